// Boxes that scroll, for users of a keyboard: they can be focused while they have more than they show.

/** Attach it to a box with `overflow: auto`: <div class="scroll" {@attach scrollable}>. */
export function scrollable(box: HTMLElement): () => void {
  const update = () => {
    const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (scrolls === box.hasAttribute("tabindex")) return;
    if (!scrolls) {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      return;
    }
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Table that scrolls");
  };
  const observer = new ResizeObserver(update);
  observer.observe(box);
  if (box.firstElementChild !== null) observer.observe(box.firstElementChild);
  return () => observer.disconnect();
}
