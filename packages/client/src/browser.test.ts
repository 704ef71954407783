import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

const here = fileURLToPath(new URL('.', import.meta.url));

async function bundle(entry: string) {
  const { metafile, outputFiles } = await build({
    entryPoints: [entry],
    absWorkingDir: here,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    minify: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  return { inputs: Object.keys(metafile.inputs), code: outputFiles[0]?.contents ?? new Uint8Array() };
}

test("the bundle contains only the client's sources, and is as small as the README says", async () => {
  const { inputs, code } = await bundle('./index.ts');
  expect(inputs).toContain('client.ts');
  expect(inputs.filter((path) => path.includes('/'))).toEqual([]);
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const promised = Number(/(\d+) kB minified and compressed/.exec(readme)?.[1]);
  const compressed = gzipSync(code).length / 1000;
  expect(compressed).toBeLessThanOrEqual(promised);
  expect(compressed).toBeGreaterThan(promised - 1);
});

test('detects a Node module', async () => {
  await expect(bundle('./testing/gateway.ts')).rejects.toThrow('node:http');
});
