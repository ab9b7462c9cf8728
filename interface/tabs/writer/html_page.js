// A page that stands alone as a file: its own colours for light and dark mode, and no request to any other address.
import {escapeMarkup} from '../../web/core/markup.js';

const STYLE = `:root { color-scheme: light dark; --page: #faf9f7; --paper: #ffffff; --ink: #22201d; --soft: #6b665f; --line: #e6e2db; --accent: #a64b26; --chosen: #2f6f6a; --pasted: #8a6d1d; }
@media (prefers-color-scheme: dark) { :root { --page: #191817; --paper: #22211f; --ink: #ece8e1; --soft: #a49d93; --line: #37342f; --accent: #e58e62; --chosen: #6fb9b1; --pasted: #d3b25c; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 24px 16px; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 720px; margin: 0 auto; padding: 24px; border: 1px solid var(--line); border-radius: 14px; background: var(--paper); }
h1, h2 { margin: 0 0 12px; font: 600 1.3rem/1.35 Georgia, 'Noto Serif', serif; overflow-wrap: anywhere; }
h2 { margin-top: 32px; font-size: 1.1rem; }
.text { margin: 16px 0; font: 1.15rem/1.75 Georgia, 'Noto Serif', serif; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
span.chosen { text-decoration: underline solid var(--chosen) 2px; text-underline-offset: .25em; }
span.pasted { text-decoration: underline dotted var(--pasted) 2px; text-underline-offset: .25em; }
span.example, span.earlier { color: var(--soft); font-style: italic; }
.strip { display: flex; height: 8px; border-radius: 4px; overflow: hidden; background: var(--line); }
.strip i { flex: 0 1 0; min-width: 1px; background: var(--line); }
.strip .chosen { background: var(--chosen); }
.strip .pasted { background: var(--pasted); }
.legend { padding-inline-start: 20px; color: var(--soft); }
.legend span { color: var(--ink); }
.told { white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; }
caption { padding-bottom: 8px; color: var(--soft); text-align: start; }
th, td { padding: 4px 8px; border-top: 1px solid var(--line); text-align: start; vertical-align: top; }
td { color: var(--soft); font-variant-numeric: tabular-nums; }
.piece { color: var(--ink); white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }`;

/**
 * The source of a page. `body` and `script` are trusted; only a page with a script may run one.
 * @param {{title: string, body: string, style?: string, script?: string}} parts
 */
export function htmlPage({title, body, style = '', script = ''}) {
  const rules = `default-src 'none'; style-src 'unsafe-inline'${script ? "; script-src 'unsafe-inline'" : ''}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${rules}">
<title>${escapeMarkup(title)}</title>
<style>
${[STYLE, style].filter(Boolean).join('\n')}
</style>
</head>
<body>
<main>
${body}
</main>${script ? `\n<script>\n${script}\n</script>` : ''}
</body>
</html>
`;
}
