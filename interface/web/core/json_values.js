// Values from JSON that somebody else may have written.

/**
 * Whether a value is an object and no list.
 * @param {any} value
 * @returns {value is Record<string, any>}
 */
export const isPlainObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
