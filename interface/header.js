// The status at the top of the page: how far the model is, or what went wrong, as a state.
let status = null, loading = {state: 'loading', sentence: 'Starting'}, trouble = null;

// From Python comes how far the model is; `lookahead:ready` is told once, when it is there.
export function mount({element, props, watch}) {
  status = element.querySelector('#status');
  const take = () => {
    const was = loading.state;
    loading = props.value;
    paint();
    if (loading.state === 'ready' && was !== 'ready') document.dispatchEvent(new CustomEvent('lookahead:ready'));
  };
  watch('value', take);
  take();
}

// A mistake stands above how far the model is, until it is taken back with null.
export function complain(sentence) {
  trouble = sentence && {state: 'error', sentence, fraction: null};
  paint();
}

// A server that was started anew is loading its model once more; until this is taken back by `complain(null)`.
export function meanwhile(loading) {
  trouble = loading;
  paint();
}

// What a page learns elsewhere of how far the model is.
export const state = () => loading.state;

// The model's name, as files and links carry it; null before it is there.
export const model = () => (loading.state === 'ready' ? loading.sentence.split(' · ')[0] : null);

function paint() {
  if (!status) return;
  const {state, sentence, fraction} = trouble || loading;
  const line = status.querySelector('.sentence'), progress = status.querySelector('progress');
  status.dataset.state = state;
  if (line.textContent !== sentence) line.textContent = sentence;
  status.title = sentence;
  progress.hidden = fraction == null;
  progress.value = fraction ?? 0;
}
