// Texts in HTML and XML.

/** @type {Record<string, string>} */
const ENTITIES = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'};

/**
 * A text as markup that shows exactly this text, also within an attribute.
 * @param {string} text
 */
export const escapeMarkup = text => text.replace(/[&<>"']/g, sign => ENTITIES[sign]);
