// Builds the package: CommonJS, and an ES module that passes its names on. So a program that comes to it both ways has one
// copy of the classes, and `instanceof` works.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

rmSync('dist', { recursive: true, force: true });
execFileSync('node', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
const names = Object.keys(createRequire(import.meta.url)('../dist/index.js')).sort();
writeFileSync(
  'dist/index.mjs',
  `export {\n${names.map((name) => `  ${name},\n`).join('')}} from './index.js';\n`,
);
writeFileSync('dist/index.d.mts', "export * from './index.js';\n");
