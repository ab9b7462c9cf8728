// Keys that are pressed while the page loads and nothing has the focus: the text box of the Write tab gets them when it is there.
// This is a script, not a module: it stands in the page itself (first_script.py), so that it runs before all other scripts.
{
  let keys = '';

  /** @param {KeyboardEvent} event */
  const keepKey = event => {
    const {key} = event, {activeElement} = document, isNone = event.isComposing || event.ctrlKey || event.altKey || event.metaKey;
    const character = key === 'Enter' ? '\n' : key;
    if (isNone || (activeElement && activeElement !== document.body)) return;
    if (key === 'Backspace') keys = keys.slice(0, -1);
    else if (character.length === 1) keys += character;
    else return;
    event.preventDefault();   // of a space, which scrolls, and of keys that open a search
  };

  /** The characters of the keys that were pressed so far. No further keys are kept. */
  globalThis.earlyKeys = () => {
    document.removeEventListener('keydown', keepKey);
    return keys;
  };
  globalThis.document?.addEventListener('keydown', keepKey);   // a test imports every script without a page
}
