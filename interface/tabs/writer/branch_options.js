// The sliders and choices above the branches: plain settings in, plain settings out.
import {BanChips} from '../../web/ui/ban_chips.js';

const NUMBERS = {k: 'k', depth: 'depth', temperature: 'temperature', top_p: 'top-p'};
const CHOICES = {mode: 'mode', until: 'length', order: 'order'};
const MOST_SEED = 1e9;

// Event `change` whenever a person, or `set`, has changed something.
export class BranchOptions extends EventTarget {
  constructor(element) {
    super();
    this.element = element;
    this.at = id => element.querySelector(`#${id}`);
    this.at('seed').value = Math.floor(Math.random() * MOST_SEED);
    element.addEventListener('input', () => this.#changed());
    this.at('again').addEventListener('click', () => this.set({seed: Math.floor(Math.random() * MOST_SEED)}));
    this.bans = new BanChips(element.querySelector('.never'));
    this.bans.addEventListener('change', () => this.#changed());
    this.#paint();
  }

  get settings() {
    const found = {seed: Math.min(MOST_SEED, Math.max(0, Math.trunc(this.at('seed').valueAsNumber || 0)))};
    for (const [name, id] of Object.entries(NUMBERS)) found[name] = this.at(id).valueAsNumber;
    for (const [name, id] of Object.entries(CHOICES)) found[name] = this.at(id).value;
    return {...found, banned: this.bans.list};
  }

  // From a file, a link or an older session: what makes no sense here is left as it is.
  set(settings) {
    for (const [name, id] of Object.entries({...NUMBERS, seed: 'seed'})) {
      if (Number.isFinite(settings[name])) this.at(id).value = settings[name];
    }
    for (const [name, id] of Object.entries(CHOICES)) {
      if ([...this.at(id).options].some(({value}) => value === settings[name])) this.at(id).value = settings[name];
    }
    if (Array.isArray(settings.banned)) this.bans.set(settings.banned);
    else this.#changed();
  }

  #changed() {
    this.#paint();
    this.dispatchEvent(new CustomEvent('change'));
  }

  #paint() {
    const {mode, until} = this.settings;
    for (const id of Object.values(NUMBERS)) this.element.querySelector(`output[for="${id}"]`).value = this.at(id).value;
    this.element.querySelector('.draw').hidden = mode !== 'sampled';
    this.at('depth').disabled = until !== 'tokens';
    this.at('depth').closest('label').classList.toggle('idle', until !== 'tokens');
  }
}
