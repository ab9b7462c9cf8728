// The status at the top of the page: how far the model is, or what went wrong, as a state.
let status = null, loading = {state: 'loading', sentence: 'Starting'}, anew = null;
const mistakes = new Map();   // by whose they are, the latest last

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

// A mistake of somebody's stands above how far the model is, until they take it back with null.
export function showError(owner, sentence) {
  mistakes.delete(owner);
  if (sentence) mistakes.set(owner, {state: 'error', sentence, fraction: null});
  paint();
}

// A server that was started anew is loading its model once more; until somebody is answered.
export function showReload(loading) {
  anew = loading;
  paint();
}

// The server has answered, and this one has nothing to complain of any more.
export function clearErrors(owner) {
  anew = null;
  showError(owner, null);
}

// What a page learns elsewhere of how far the model is.
export const loadingState = () => loading.state;

// The model's name, as files and links carry it; null before it is there.
export const modelName = () => (loading.state === 'ready' ? loading.sentence.split(' · ')[0] : null);

function paint() {
  if (!status) return;
  const {state, sentence, fraction} = anew || [...mistakes.values()].at(-1) || loading;
  const line = status.querySelector('.sentence'), progress = status.querySelector('progress');
  status.dataset.state = state;
  if (line.textContent !== sentence) line.textContent = sentence;
  status.title = sentence;
  progress.hidden = fraction == null;
  progress.value = fraction ?? 0;
}
