// The path that the user wants to see on the map.

class Shown {
  /** Names of the link directions. */
  links = $state.raw<string[]>([]);
}

export const shown = new Shown();
