// The instructions that a person can choose from. Each of them is about a source.
const REWRITINGS = [
  'clear and concise', 'more detailed and engaging', 'more formal and professional', 'more casual and conversational',
  'more technical and precise', 'more creative and imaginative', 'more persuasive and compelling',
];

export const READY_INSTRUCTIONS = [
  ...REWRITINGS.map(ending => `Rewrite this document to be ${ending}.`),
  'Summarize this document in one sentence.',
  'Translate this document into Spanish.',
  'Write a concise essay according to this outline.',
  'Write a detailed essay according to this outline.',
];

/**
 * Whether an instruction is about a source that is not there: the model would invent one.
 * @param {string | null} instruction
 * @param {string | null} source
 */
export const needsSource = (instruction, source) => READY_INSTRUCTIONS.includes(instruction?.trim() ?? '') && !source?.trim();
