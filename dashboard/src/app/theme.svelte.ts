// Dark or light: as the system has it, or as the user chose.

const STORAGE = "thalweg-theme";

export type Choice = "system" | "light" | "dark";

class Theme {
  choice = $state<Choice>(read());
  #system = matchMedia("(prefers-color-scheme: dark)");
  #isSystemDark = $state(this.#system.matches);
  isDark = $derived(this.choice === "dark" || (this.choice === "system" && this.#isSystemDark));

  constructor() {
    this.#system.addEventListener("change", () => (this.#isSystemDark = this.#system.matches));
  }

  /** Chooses the next: system, light, dark. */
  next(): void {
    this.choice = this.choice === "system" ? "light" : this.choice === "light" ? "dark" : "system";
    try {
      localStorage.setItem(STORAGE, this.choice);
    } catch {
      // Without storage the choice lasts until the page is reloaded.
    }
  }
}

function read(): Choice {
  try {
    const stored = localStorage.getItem(STORAGE);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export const theme = new Theme();
