// Runs all tests, or those of the files that are named, and counts them. A run without any test fails.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

const under = (folder) =>
  readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => /\.test\.(c|m)?js$/.test(name));

// What was built from a file that is gone stays where it is.
const built = under('build/tests').filter((name) =>
  existsSync(name.replace(/^build./, '').replace(/\.js$/, '.ts')),
);
const named = process.argv.slice(2);
const files = named.length > 0 ? named : [...built, ...under('tests')];

let passed = 0;
let failed = 0;
const stream = run({
  files: files.map((file) => join(process.cwd(), file)),
  concurrency: 2,
  timeout: 300_000,
});
// A file counts as a test of its own in some versions of Node.js, and a suite never does.
const isTest = ({ details, file, name }) => details.type !== 'suite' && name !== file;
stream.on('test:pass', (event) => (passed += isTest(event) && !event.skip ? 1 : 0));
stream.on('test:fail', () => (failed += 1));
stream.compose(spec).pipe(process.stdout);
stream.on('end', () => {
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
  process.on('exit', () =>
    console.log(failed > 0 ? `tests: ${passed} passed, ${failed} failed` : `tests: ${passed} passed`),
  );
});
