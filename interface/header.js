// How far the model is, and what went wrong, as a state of the page.
const status = element.querySelector('#status');
const sentence = status.querySelector('.sentence');
const progress = status.querySelector('progress');
let ready = false;

function paint() {
  const {state, sentence: said, fraction} = props.value;
  status.dataset.state = state;
  if (sentence.textContent !== said) sentence.textContent = said;
  status.title = said;
  progress.hidden = fraction == null;
  progress.value = fraction ?? 0;
  if (state === 'ready' && !ready) {
    ready = true;
    document.dispatchEvent(new CustomEvent('lookahead:ready'));
  }
}

watch('value', paint);
paint();
