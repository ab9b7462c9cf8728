// Small helpers for what is built in script. Every text is set as text.
export function make(tag, {text, ...properties} = {}, ...children) {
  const made = Object.assign(document.createElement(tag), tag === 'button' ? {type: 'button', ...properties} : properties);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// To the clipboard, also where the page is not served securely. Whether it went there.
export async function copyText(text, holder = document.body) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelecting(text, holder);
  }
}

function copyBySelecting(text, holder) {
  const focused = document.activeElement, field = make('textarea', {value: text, readOnly: true, className: 'off-screen'});
  holder.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  focused?.focus({preventScroll: true});
  return done;
}

// A file for the person to keep.
export function downloadFile(content, name, type) {
  const address = URL.createObjectURL(new Blob([content], {type: `${type};charset=utf-8`}));
  make('a', {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A dialog closes at a click beside it and at every button that says so.
export function closeOnClick(dialog) {
  dialog.addEventListener('click', event => {
    if (event.target === dialog || event.target.closest('[data-close]')) dialog.close();
  });
}

const MOMENT = {dateStyle: 'medium', timeStyle: 'short'};
const TIME = {timeStyle: 'short'};

export function formatTime(time) {
  const date = new Date(time), today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(undefined, today ? TIME : MOMENT);
}
