// Lints an OpenAPI document by the rules of redocly.yaml beside this file: node lint.mjs DOCUMENT. Needs no network.
import { formatProblems, getTotals, lint, loadConfig } from '@redocly/openapi-core';

const config = await loadConfig({ configPath: new URL('redocly.yaml', import.meta.url).pathname });
const problems = await lint({ ref: process.argv[2], config });
formatProblems(problems, { format: 'codeframe', totals: getTotals(problems), version: '' });
process.exit(problems.length > 0 ? 1 : 0);
