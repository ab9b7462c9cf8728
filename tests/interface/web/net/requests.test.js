import assert from 'node:assert/strict';
import {mock, test} from 'node:test';

import {ServerRequests, withTimeout} from '../../../../interface/web/net/requests.js';

const SILENT = 'The server does not answer. Your text is safe here; trying again …';
const NEVER = new Promise(() => {});
const thinking = (number, more = {}) => ({number, state: 'thinking', over: false, seen: 1, ...more});
const settled = (number, more = {}) => ({number, state: 'settled', over: true, seen: 2, ...more});

// What a page's script hears, over a server that gives these answers one after the other: values, promises, or functions
// of what was sent. Time stands until `pass` lets milliseconds go by; all that chance gives is its middle.
async function talk(t, answers, use) {
  t.mock.timers.enable({apis: ['setTimeout']});
  let now = 1_000_000;
  t.mock.method(performance, 'now', () => now);
  t.mock.method(Math, 'random', () => 0.5);
  const sent = [], heard = [], lost = [], forgotten = [], checked = [], told = [], version = {isOther: false}, account = {unknown: false};
  const next = name => async given => {
    sent.push([name, given]);
    if (name === 'stop') return null;
    const answer = answers.length ? answers.shift() : NEVER;
    return typeof answer === 'function' ? answer(given) : answer;
  };
  const server = Object.fromEntries(['ask', 'more', 'stop', 'tree'].map(name => [name, next(name)]));
  const requests = new ServerRequests({
    server,
    makeRequest: () => ({text: 'a'}),
    onNews: (news, request) => heard.push([news.state, request.number]),
    onFailure: sentence => lost.push(sentence),
    onForgotten: () => forgotten.push(sent.length),
    signedOut: async () => account.unknown,
    outdated: async () => { checked.push(sent.length); return version.isOther; },
    onOutdated: () => told.push(sent.length),
  });
  const rest = async () => { for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate); };
  const pass = async milliseconds => {
    now += milliseconds;
    t.mock.timers.tick(milliseconds);
    await rest();
  };
  await use({requests, sent, heard, lost, forgotten, checked, told, version, account, pass, names: () => sent.map(([name]) => name)});
}

const fails = () => Promise.reject(new Error('no connection'));

test('news are fetched until they are over', t => talk(t, [thinking(1), thinking(1, {seen: 5}), settled(1)], async page => {
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.names(), ['ask', 'more', 'more']);
  assert.deepEqual(page.sent[0][1], {text: 'a', page: page.requests.page, number: 1});
  assert.deepEqual(page.sent[2][1], {page: page.requests.page, number: 1, seen: 5});
  assert.deepEqual(page.heard, [['thinking', 1], ['thinking', 1], ['settled', 1]]);
  assert.equal(page.requests.active, false);
}));

for (const [name, answers] of Object.entries({ask: [NEVER], more: [thinking(1), NEVER]})) {
  test(`a ${name} that is never answered is given up, and the page asks anew`, t => talk(t, [...answers, settled(2)], async page => {
    page.requests.schedule();
    await page.pass(40);
    await page.pass(44_999);
    assert.deepEqual(page.lost, []);
    await page.pass(1);
    assert.deepEqual(page.lost, [SILENT]);
    assert.equal(page.requests.active, true);
    await page.pass(499);
    assert.equal(page.sent.length, answers.length);
    await page.pass(1);
    await page.pass(40);
    assert.equal(page.heard.at(-1)[0], 'settled');
    assert.equal(page.requests.active, false);
  }));
}

test('an answer in time is not given up later', t => talk(t, [settled(1)], async page => {
  page.requests.schedule();
  await page.pass(40);
  await page.pass(100_000);
  assert.deepEqual([page.lost, page.names()], [[], ['ask']]);
}));

test('the server is asked again after longer and longer while it fails', t => talk(t, Array(8).fill(fails), async page => {
  page.requests.schedule();
  await page.pass(40);
  for (const wait of [500, 1000, 2000, 4000, 8000, 8000]) {
    const before = page.sent.length;
    await page.pass(wait - 1);
    assert.equal(page.sent.length, before, `nothing before ${wait}`);
    await page.pass(1);
    assert.equal(page.sent.length, before + 1, `again after ${wait}`);
  }
  assert.deepEqual(page.lost, Array(7).fill(SILENT));
}));

test('after an answer it is asked again soon', t => talk(t, [fails, fails, settled(3), fails, settled(5)], async page => {
  page.requests.schedule();
  for (const wait of [40, 500, 40, 1000, 40]) await page.pass(wait);
  assert.equal(page.heard.length, 1);
  page.requests.schedule();
  for (const wait of [40, 500, 40]) await page.pass(wait);
  assert.equal(page.heard.length, 2);
}));

test('the random part of a retry is at most half its time', t => talk(t, [fails, fails], async page => {
  Math.random.mock.mockImplementation(() => 0);
  page.requests.schedule();
  await page.pass(40);
  await page.pass(250);
  await page.pass(40);
  assert.equal(page.sent.length, 2);
}));

test('a page whose sign-in the server has forgotten says so, and goes on when it is known again', t => talk(t, [fails, settled(2)], async page => {
  page.account.unknown = true;
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.lost, ['You are no longer signed in. Reload the page and sign in; your text is kept.']);
  await page.pass(500);
  await page.pass(40);
  assert.deepEqual(page.heard, [['settled', 2]]);
}));

test('a server without room says so, and is asked again after longer and longer', t => {
  const full = number => ({number, state: 'full', sentence: 'There is no room.', over: true});
  return talk(t, [full(1), full(2), full(3), settled(4)], async page => {
    page.requests.schedule();
    await page.pass(40);
    for (const wait of [500, 1000, 2000]) {
      const before = page.sent.length;
      await page.pass(wait - 1);
      assert.equal(page.sent.length, before);
      await page.pass(1);
      assert.equal(page.sent.length, before + 1);
    }
    assert.deepEqual(page.lost, Array(3).fill('There is no room.'));
    assert.deepEqual(page.heard, [['settled', 4]]);
  });
});

test('a request that a busy model server has refused is sent again after the time that it asks for', t => {
  const busy = number => ({number, state: 'full', sentence: 'It is too busy.', again_after: 30, over: true});
  return talk(t, [busy(1), busy(2), settled(3)], async page => {
    Math.random.mock.mockImplementation(() => 0);
    page.requests.schedule();
    await page.pass(40);
    for (const number of [1, 2]) {
      await page.pass(29_999);
      assert.equal(page.sent.length, number);
      await page.pass(1);
      assert.equal(page.sent.length, number + 1);
    }
    assert.deepEqual(page.lost, Array(2).fill('It is too busy.'));
    assert.deepEqual(page.heard, [['settled', 3]]);
  });
});

test('a change of the text is sent at once, although a busy model server has asked to wait', t => {
  const busy = {number: 1, state: 'full', sentence: 'It is too busy.', again_after: 30, over: true};
  return talk(t, [busy, settled(2)], async page => {
    page.requests.schedule();
    await page.pass(40);
    page.requests.schedule();
    await page.pass(40);
    assert.deepEqual(page.heard, [['settled', 2]]);
    await page.pass(60_000);
    assert.equal(page.sent.length, 2);
  });
});

const REFUSED = 'That is too much at once. Wait for 4 seconds.';
const refused = () => ({state: 'full', sentence: REFUSED, retry_after: 4, over: true});
const SAID = `${REFUSED} The page then goes on by itself.`;

test('a refused request is repeated after the time that the server says, and so is the fetching of its news', t => {
  const answers = [refused(), thinking(1), refused(), refused(), settled(1)];
  return talk(t, answers, async page => {
    page.requests.schedule();
    await page.pass(40);
    for (const calls of [1, 3, 4]) {
      assert.equal(page.sent.length, calls);
      await page.pass(4000);
      assert.equal(page.sent.length, calls, 'not before the time has passed');
      await page.pass(1000);   // what chance adds
    }
    assert.deepEqual(page.names(), ['ask', 'ask', 'more', 'more', 'more']);
    assert.deepEqual(page.sent[4][1], {page: page.requests.page, number: 1, seen: 1});
    assert.deepEqual([page.lost, page.heard, page.checked], [[SAID, SAID, SAID], [['thinking', 1], ['settled', 1]], []]);
  });
});

test('a page with its whole answer says nothing of a refusal: only news of branches ahead wait', t => {
  const answers = [settled(1, {over: false}), refused(), settled(1), refused(), settled(2)];
  return talk(t, answers, async page => {
    page.requests.schedule();
    await page.pass(40);
    await page.pass(5000);
    assert.deepEqual([page.names(), page.lost, page.heard], [['ask', 'more', 'more'], [], [['settled', 1], ['settled', 1]]]);
    page.requests.schedule();
    await page.pass(40);
    assert.deepEqual(page.lost, [SAID], 'the next request is refused, which is said');
  });
});

test('what is asked after a refusal leaves when the server takes requests again', t => talk(t, [refused(), settled(3)], async page => {
  let clock = 1e6;
  t.mock.method(performance, 'now', () => clock);
  page.requests.schedule();
  await page.pass(40);
  page.requests.schedule();
  clock += 2000;
  await page.pass(2000);
  page.requests.schedule();
  await page.pass(2999);
  assert.deepEqual([page.names(), page.lost], [['ask'], [SAID, SAID, SAID]], 'the page still says why it waits');
  clock += 3000;
  await page.pass(1);
  assert.deepEqual([page.names(), page.sent[1][1].number, page.heard], [['ask', 'ask'], 3, [['settled', 3]]]);
}));

test('the refusal of an older request holds back the one that is scheduled', t => {
  let refuse;
  return talk(t, [new Promise(resolve => { refuse = resolve; }), settled(2)], async page => {
    let clock = 1e6;
    t.mock.method(performance, 'now', () => clock);
    page.requests.schedule();
    await page.pass(40);
    page.requests.schedule();
    refuse(refused());
    await page.pass(0);
    clock += 40;
    await page.pass(40);
    assert.deepEqual([page.names(), page.lost], [['ask'], [SAID]]);
    clock += 5000;
    await page.pass(5000);
    assert.deepEqual([page.names(), page.heard], [['ask', 'ask'], [['settled', 2]]]);
  });
});

test('a refused request that was cancelled is not repeated', t => talk(t, [refused()], async page => {
  page.requests.schedule();
  await page.pass(40);
  page.requests.cancel();
  await page.pass(100_000);
  assert.deepEqual(page.names(), ['ask', 'stop']);
}));

test('there is no tree where the server answers with a sentence', t => talk(t, [{nodes: []}, null, refused()], async page => {
  assert.deepEqual(await page.requests.tree(), {nodes: []});
  assert.deepEqual([await page.requests.tree(), await page.requests.tree()], [null, null]);
}));

test('a page whose newest request the server calls superseded sends it again', t => talk(t, [{number: 1, superseded: true}, settled(2)], async page => {
  page.requests.schedule();
  for (const wait of [40, 500, 40]) await page.pass(wait);
  assert.deepEqual(page.heard, [['settled', 2]]);
}));

test('a page that is forgotten before its text is settled asks anew', t => talk(t, [thinking(1), {number: 1, unknown: true}, settled(2)], async page => {
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.forgotten, [2]);
  for (const wait of [500, 40]) await page.pass(wait);
  assert.deepEqual(page.heard.at(-1), ['settled', 2]);
}));

test('a page that is forgotten after its text is settled asks nothing more', t => {
  const answers = [settled(1, {over: false}), {number: 1, unknown: true}];
  return talk(t, answers, async page => {
    page.requests.schedule();
    await page.pass(40);
    await page.pass(100_000);
    assert.deepEqual([page.names(), page.forgotten, page.requests.active], [['ask', 'more'], [2], false]);
    page.requests.schedule();
    await page.pass(40);
    assert.equal(page.names().at(-1), 'ask');
  });
});

test('after a failure, and at the first answer after one, the page compares its version', t => talk(t, [fails, fails, settled(3), settled(4)], async page => {
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.checked, [1]);
  for (const wait of [500, 40]) await page.pass(wait);
  assert.deepEqual([page.checked, page.told], [[1, 2], []]);
  page.version.isOther = true;
  for (const wait of [1000, 40]) await page.pass(wait);
  assert.deepEqual([page.heard, page.checked, page.told], [[['settled', 3]], [1, 2, 3], [3]]);
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.checked, [1, 2, 3], 'without a failure it is not compared');
}));

test('a page that the server has forgotten compares its version', t => talk(t, [thinking(1), {number: 1, unknown: true}, settled(2)], async page => {
  page.version.isOther = true;
  page.requests.schedule();
  await page.pass(40);
  assert.deepEqual([page.checked, page.told], [[2], [2]]);
  for (const wait of [500, 40]) await page.pass(wait);
  assert.deepEqual(page.heard.at(-1), ['settled', 2]);
}));

test('news of an older request are ignored', t => {
  let answer = null;
  const late = new Promise(resolve => { answer = resolve; });
  return talk(t, [late, settled(2)], async page => {
    page.requests.schedule();
    await page.pass(40);
    page.requests.schedule();
    await page.pass(40);
    answer(settled(1));
    await page.pass(0);
    assert.deepEqual(page.heard, [['settled', 2]]);
    await page.pass(100_000);
    assert.deepEqual([page.lost, page.names()], [[], ['ask', 'ask']]);
  });
});

test('a cancelled request is stopped once, its news are ignored, and it is not repeated', t => talk(t, [thinking(1), NEVER], async page => {
  page.requests.schedule();
  await page.pass(40);
  page.requests.cancel();
  page.requests.cancel();
  await page.pass(200_000);
  assert.deepEqual(page.names(), ['ask', 'more', 'stop']);
  assert.deepEqual(page.sent[2][1], {page: page.requests.page, number: 1});
  assert.deepEqual([page.lost, page.requests.active], [[], false]);
}));

test('a request that was cancelled before it left is not sent', t => talk(t, [], async page => {
  page.requests.schedule();
  page.requests.cancel();
  await page.pass(1000);
  assert.deepEqual(page.names(), ['stop']);
}));

test('of requests close together the last one is sent', t => talk(t, [settled(1), settled(4)], async page => {
  page.requests.schedule();
  await page.pass(0);
  for (let time = 0; time < 3; time += 1) page.requests.schedule();
  await page.pass(40);
  assert.deepEqual(page.sent.map(([, {number}]) => number), [1, 4]);
}));

test('a long text is sent less often', t => talk(t, [settled(1), settled(2), settled(3)], async page => {
  page.requests.schedule();
  await page.pass(0);
  page.requests.schedule({length: 20_001});
  await page.pass(200);
  assert.equal(page.sent.length, 1);
  await page.pass(50);
  assert.equal(page.sent.length, 2);
  page.requests.schedule({length: 20_000});
  await page.pass(40);
  assert.equal(page.sent.length, 3);
}));

test('while there is nothing to ask, nothing is sent', t => talk(t, [], async page => {
  page.requests.makeRequest = () => null;
  page.requests.schedule();
  await page.pass(100_000);
  assert.deepEqual([page.names(), page.lost], [[], []]);
}));

test('a server that loads its model is asked again after a second, unless that has failed', t => {
  const waiting = (number, state) => ({number, state: 'waiting', over: true, loading: {state}});
  return talk(t, [waiting(1, 'loading'), waiting(2, 'error')], async page => {
    page.requests.schedule();
    await page.pass(40);
    await page.pass(999);
    assert.equal(page.sent.length, 1);
    await page.pass(1);
    await page.pass(40);
    assert.equal(page.sent.length, 2);
    await page.pass(100_000);
    assert.equal(page.sent.length, 2);
    assert.deepEqual(page.heard.map(([state]) => state), ['waiting', 'waiting']);
  });
});

test('every page has a random id of its own', () => {
  const pages = Array.from({length: 20}, () => new ServerRequests({}).page);
  assert.equal(new Set(pages).size, 20);
  for (const page of pages) assert.match(page, /^[0-9a-f]{32}$/);
});

test('a promise that settles in time keeps its result', async () => {
  assert.equal(await withTimeout(Promise.resolve(7)), 7);
  await assert.rejects(withTimeout(Promise.reject(new Error('broken'))), /broken/);
  await assert.rejects(withTimeout(NEVER, 1), /in time/);
  mock.reset();
});
