// For a program that has documents with authors: each as Markdown, as HTML and as JSON.
import {text} from 'node:stream/consumers';

import {authorshipHtml, authorshipJson, authorshipMarkdown} from '../../../interface/tabs/writer/authorship_export.js';
import {replayHtml} from '../../../interface/tabs/writer/replay_file.js';

const documents = JSON.parse(await text(process.stdin));
process.stdout.write(JSON.stringify(documents.map(document => ({
  markdown: authorshipMarkdown(document), html: authorshipHtml(document), json: authorshipJson(document),
  replay: replayHtml({name: document.name, replay: {first: [{text: document.text, author: 'typed', note: document.name}], steps: []}}),
}))));
