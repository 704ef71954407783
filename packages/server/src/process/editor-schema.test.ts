import { mkdtemp, readFile, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configTemplate } from './config-template.ts';
import { placeEditorSchema } from './editor-schema.ts';
import { homePaths } from '../kernel/home-paths.ts';

test('the schema for editors is written once for each version, where the template says', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-schema-'));
  try {
    expect(configTemplate().split('\n')[0]).toBe('# yaml-language-server: $schema=config.schema.json');
    const paths = homePaths(dir);
    const file = join(dir, 'config.schema.json');
    await placeEditorSchema(paths);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ properties: { gateway: { properties: { port: { maximum: 65_535 } } } } });
    const { ctimeMs, mode } = await stat(file);
    expect(mode & 0o777).toBe(0o600);
    await placeEditorSchema(paths);
    expect((await stat(file)).ctimeMs).toBe(ctimeMs);
    await utimes(file, 1, 1);
    await placeEditorSchema(paths);
    expect((await stat(file)).mtimeMs).toBeGreaterThan(1_000);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
