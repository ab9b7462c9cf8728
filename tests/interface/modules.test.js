import assert from 'node:assert/strict';
import {existsSync, readFileSync, readdirSync} from 'node:fs';
import {basename, dirname, join, relative, resolve} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const scripts = readdirSync(join(ROOT, 'interface'), {recursive: true}).filter(name => name.endsWith('.js'));

// Scripts that only compute and know nothing of the page: those that are changed at random.
const pure = JSON.parse(readFileSync(join(ROOT, 'stryker.config.json'), 'utf-8')).mutate.map(name => join(name));
const imports = name => [...readFileSync(join(ROOT, name), 'utf-8').matchAll(/^import .* from '(.+)';$/gm)]
  .map(([, path]) => relative(ROOT, resolve(ROOT, dirname(name), path)));

test('every script finds all that it imports', async () => {
  assert.ok(scripts.length > 60);
  for (const name of scripts) await import(join(ROOT, 'interface', name));
});

test('no two scripts share a file name', () => {
  const names = scripts.map(name => basename(name));
  assert.equal(new Set(names).size, names.length);
});

test('pure scripts import pure scripts alone', () => {
  for (const name of pure) assert.deepEqual(imports(name).filter(other => !pure.includes(other)), [], name);
});

test('pure scripts name nothing of the page', () => {
  for (const name of pure) {
    const code = readFileSync(join(ROOT, name), 'utf-8').replace(/\/\*[^]*?\*\/|\/\/.*$/gm, '');
    assert.doesNotMatch(code, /\b(document|window|navigator|sessionStorage|localStorage|addEventListener|setTimeout)\b\s*[.(]/, name);
  }
});

test('every pure script has a test file of its own', () => {
  for (const name of pure) {
    const own = relative('interface', name).replace('.js', '.test.js');
    assert.ok(existsSync(join(import.meta.dirname, own)), own);
  }
});
