// The parts of the page that a tab is made of.

// All of them, by name, once they are mounted; branches answer as soon as they hear.
export async function pageElements(places) {
  for (;;) {
    const found = Object.fromEntries(Object.entries(places).map(([name, place]) => [name, document.querySelector(place)]));
    if (Object.values(found).every(Boolean) && (!found.branches || found.branches.branchView)) return found;
    await new Promise(resolve => { setTimeout(resolve, 10); });
  }
}
