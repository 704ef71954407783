import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientDriver } from './client-drivers.ts';
import { type ClientSetup, script } from './client-setup.ts';
import type { TaskReport } from './client-task.ts';

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Runs Codex with an MCP server, which it offers as a namespace, and with an image that it views; the session continues after both. */
export async function runCodexExtras(setup: ClientSetup, codex: ClientDriver, packages: string): Promise<TaskReport> {
  const done: string[] = [];
  const wrong: string[] = [];
  const check = (what: string, holds: boolean, output: string) =>
    void (holds ? done.push(what) : wrong.push(`codex: ${what}: ${output.trim().slice(-600)}`));
  const place = await setup.connect(codex, { name: 'codex-extras', flags: ['--mcp'] });
  const image = join(place.work, 'pixel.png');
  await writeFile(image, Buffer.from(pixel, 'base64'));
  const sent = () => setup.provider.requests.map(({ body }) => JSON.stringify(body));

  setup.provider.setAnswer(
    script('Ask the agent', { name: 'mcp__gatehouse__agent_default', args: { message: 'Greet us' } }, 'wombat asked', 'numbat said'),
  );
  const asked = await setup.start(codex, packages, place, codex.first('Ask the agent'));
  check(
    'MCP server',
    asked.output.includes('wombat asked') && sent().some((body) => body.includes('Greet us') && !body.includes('Ask the agent')),
    asked.output,
  );

  setup.provider.setAnswer(script('View the image', { name: 'view_image', args: { path: image } }, 'wombat viewed', 'wombat viewed'));
  const viewed = await setup.start(codex, packages, place, codex.again?.('View the image') ?? []);
  check('viewed image', viewed.output.includes('wombat viewed') && sent().some((body) => body.includes('data:image/png;base64,')), viewed.output);

  setup.provider.setAnswer(() => ({ text: 'numbat said' }));
  const resumed = await setup.start(codex, packages, place, codex.again?.('What now?') ?? []);
  check('resume after both', resumed.code === 0 && resumed.output.includes('numbat said'), resumed.output);
  return { done, wrong };
}
