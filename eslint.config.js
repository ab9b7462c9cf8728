// The rules for the page's scripts and their tests: ESLint's recommended ones, no unused names, no undeclared globals.
import js from '@eslint/js';
import globals from 'globals';

const rules = {
  'no-unused-vars': ['error', {ignoreRestSiblings: true}], 'no-undef': 'error',
  'max-len': ['error', {code: 160, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true}],
};

export default [
  {ignores: ['**/.*/**', 'node_modules/']},
  js.configs.recommended,
  {files: ['interface/**/*.js'], languageOptions: {globals: globals.browser}, rules},
  {files: ['tests/**/*.js', '*.config.js'], languageOptions: {globals: globals.node}, rules},
];
