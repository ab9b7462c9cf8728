// The dialog with the link, and the one that shows an instruction that came with a link.
import {MOST_LINK, encodeLink, publicAddress} from './document_link.js';
import {copyText, make} from '../../web/ui/elements.js';

const OVER = length => `As a link this text would be ${Math.ceil(length / 1024)} KB long, and many programs cut links `
  + 'after 8 KB. Send a file instead.';

// What is to be typed in a terminal stands in quotes that must not be copied with it.
const withCommand = sentence =>
  sentence.split(/“(python [^”]*)”/).map((part, index) => (index % 2 ? make('code', {text: part}) : part));

async function linkOf(document, address) {
  const {text, settings, model, instruction, instructed} = document;
  const seed = settings?.seed ?? null;
  return address + await encodeLink({text, settings, seed, model, instruction: instructed ? instruction : null});
}

export function shareDialog(dialog, {keeping, hooks}) {
  const find = selector => dialog.querySelector(selector);
  const field = find('#share-link'), copying = find('#share-copy'), over = find('.over'), note = find('.address');
  const paint = (link, sentence, refusal) => {
    field.value = link;
    field.parentElement.hidden = Boolean(refusal);
    over.hidden = !refusal;
    over.querySelector('.sentence').textContent = refusal;
    note.replaceChildren(...withCommand(sentence));
    note.hidden = !sentence;
    copying.textContent = 'Copy';
  };
  copying.addEventListener('click', async () => {
    copying.textContent = await copyText(field.value, dialog) ? 'Copied' : 'Press Ctrl+C';
    field.select();
  });
  field.addEventListener('focus', () => field.select());
  find('#share-file').addEventListener('click', () => {
    dialog.close();
    keeping.exportJson();
  });
  return async () => {
    const {address, sentence} = publicAddress(location, hooks.publicAddress());
    try {
      const link = await linkOf(keeping.snapshot(), address);
      if (link.length > MOST_LINK) paint('', '', OVER(link.length));
      else paint(link, sentence, '');
    } catch (error) {
      paint('', '', error.message);
    }
    dialog.showModal();
  };
}

// Shows the instruction and asks; `use` is called only if the person says so.
export function offerDialog(dialog) {
  let accepted = () => {};
  dialog.querySelector('#offer-use').addEventListener('click', () => {
    dialog.close();
    accepted();
  });
  dialog.querySelector('#offer-leave').addEventListener('click', () => dialog.close());
  return (instruction, use) => {
    dialog.querySelector('.offered').textContent = instruction;
    accepted = use;
    dialog.showModal();
  };
}
