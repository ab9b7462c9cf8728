import assert from 'node:assert/strict';
import {test} from 'node:test';

import {escapeMarkup} from '../../../../interface/web/core/markup.js';

test('nothing of a text is markup', () => {
  assert.equal(escapeMarkup(`<b title="x">'&amp;'</b>`), '&lt;b title=&quot;x&quot;&gt;&#39;&amp;amp;&#39;&lt;/b&gt;');
});
