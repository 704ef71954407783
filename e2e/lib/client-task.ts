import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientDriver } from './client-drivers.ts';
import { type ClientSetup, script } from './client-setup.ts';

/** What a client did of its task, and where it stopped. */
export interface TaskReport {
  readonly done: readonly string[];
  readonly wrong: readonly string[];
}

/** Runs a client with a token of `gatehouse connect`: a tool round trip that writes a file, its answer, a second turn. */
export async function runTask(setup: ClientSetup, driver: ClientDriver, packages: string, model = 'test-model'): Promise<TaskReport> {
  const done: string[] = [];
  const wrong: string[] = [];
  const label = model === 'test-model' ? driver.id : `${driver.id} with ${model}`;
  const check = (what: string, holds: boolean, output: string) =>
    void (holds ? done.push(what) : wrong.push(`${label}: ${what}: ${output.trim().slice(-600)}`));
  const place = await setup.connect(driver, { model, name: `${driver.id}-${model}` });
  const file = join(place.work, 'note.txt');
  const call = driver.write(file, 'quokka');
  setup.provider.setAnswer(script('Write the note', call, 'wombat written', 'numbat said'));
  const first = await setup.start(driver, packages, place, driver.first('Write the note'));
  check('file', (await readFile(file, 'utf8').catch(() => '')).trim() === 'quokka', first.output);
  check('answer', first.output.includes('wombat written'), first.output);
  if (driver.again === undefined) return { done, wrong };
  const second = await setup.start(driver, packages, place, driver.again('What now?'));
  const sent = setup.provider.requests.map(({ body }) => JSON.stringify(body)).findLast((body) => body.includes('What now?')) ?? '';
  check('second turn', second.output.includes('numbat said') && sent.includes('wombat written'), second.output);
  return { done, wrong };
}

/** Runs the client with a default token, which was not created for it, and returns what it shows the user. */
export async function runWithDefaultToken(setup: ClientSetup, driver: ClientDriver, packages: string): Promise<string> {
  const place = await setup.connect(driver, { model: 'test-model', name: `${driver.id}-default` });
  await setup.useDefaultToken(place);
  setup.provider.setAnswer(() => ({ text: 'numbat said' }));
  return (await setup.start(driver, packages, place, driver.first('Say hello'))).output;
}

/** True when a default token behaves as expected: the strict chat route refuses it with advice, the others accept it. */
export function isGoodDefault(driver: ClientDriver, output: string): boolean {
  return output.includes(driver.group === 'chat' || driver.group === 'more' ? 'gatehouse connect' : 'numbat said');
}
