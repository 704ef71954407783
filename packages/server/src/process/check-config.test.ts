import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkConfig } from './check-config.ts';

test.each([
  ['logging: { level: debug }\nmodels: { discover: false }\n', []],
  ['gatway: {}\nlogging: { level: loud }\n', [/:1:1: gatway: .*did you mean "gateway"/, /:2:19: logging.level: /]],
  ['models: { default: nobody/nothing }\nproviders: { a: { type: openai, models: [{ id: m }] } }\n', [/:1:20: models.default: expected a model/]],
  ['embedding: { provider: a }\nproviders: { a: { type: anthropic, models: [{ id: m }] } }\n', [/embedding.provider: .* offers no embeddings/]],
  ['a: "x', [/yaml:1:\d: .*missing/]],
])('of %j every problem is named', async (text, expected) => {
  const home = await mkdtemp(join(tmpdir(), 'gatehouse-check-'));
  try {
    const file = join(home, 'mine.yaml');
    expect((await checkConfig(home, file, {})).problems).toEqual([`${file} does not exist`]);
    await writeFile(file, text);
    await writeFile(join(home, 'config.yaml'), text);
    for (const given of [file, undefined]) {
      const { problems } = await checkConfig(home, given, {});
      expect(problems).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
    }
  } finally {
    await rm(home, { recursive: true });
  }
});
