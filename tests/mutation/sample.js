// For Stryker: lets a share of all changes through, drawn by seed. The others are reported as errors, which count for nothing.
import {createHash} from 'node:crypto';

import {PluginKind, declareValuePlugin} from '@stryker-mutator/api/plugin';

const {MUTATION_SHARE: share = '100', MUTATION_SEED: seed = '1'} = process.env;

// A number from 0 up to 1 for a change, by what it does and where.
function lot({fileName, location, mutatorName, replacement}) {
  const change = JSON.stringify([seed, fileName.split(/[/\\]/).slice(-2), location, mutatorName, replacement]);
  return createHash('sha256').update(change).digest().readUInt32BE() / 2 ** 32;
}

const drawn = mutant => lot(mutant) < Number(share) / 100;

const sample = {
  init: async () => {},
  check: async mutants => Object.fromEntries(mutants.map(mutant =>
    [mutant.id, drawn(mutant) ? {status: 'passed'} : {status: 'compileError', reason: 'not drawn'}])),
  group: async mutants => [mutants.map(({id}) => id)],
};

export const strykerPlugins = [declareValuePlugin(PluginKind.Checker, 'sample', sample)];
