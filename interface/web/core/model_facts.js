// Explains the line about the model in the page's header, which `Model.describe` writes.

const KEPT = 'what was computed of a text is kept, and not computed again';
const COMPUTED_AGAIN = 'all of a text is computed again each time';

/**
 * One sentence that explains each part of the line, in its order; empty for another line.
 * @param {string} line as “SmolLM2-135M-Instruct · CPU · float32 · cached”
 */
export function modelFactsSentence(line) {
  const parts = line.split(' · '), [name, where, dtype, ...more] = parts, engine = parts[parts.length - 1];
  if (engine === 'remote') return `${name} is the language model; ${where} is the server that computes it; remote: this app computes nothing of it.`;
  if (parts.length < 4) return '';
  const stored = more.slice(0, -1).map(quantization => `; ${quantization}: how its weights are stored`).join('');
  const cache = engine === 'cached' ? KEPT : COMPUTED_AGAIN;
  return `${name} is the language model; ${where} is the device that computes it; ${dtype} is the type of its numbers${stored}; ${engine}: ${cache}.`;
}
