import { drivers } from '../e2e/lib/client-drivers.ts';
import { startClientSetup } from '../e2e/lib/client-setup.ts';
import { installClients } from '../e2e/lib/client-packages.ts';
import { isGoodDefault, runTask, runWithDefaultToken } from '../e2e/lib/client-task.ts';
import { runCodexExtras } from '../e2e/lib/codex-extras.ts';

/** Model names for which a client behaves differently. */
const further: Readonly<Record<string, string>> = { opencode: 'claude-sonnet-4-5', 'qwen-code': 'deepseek-reasoner' };

export interface ClientsReport {
  /** Completed tasks, by client. */
  readonly done: Readonly<Record<string, readonly string[]>>;
  readonly wrong: readonly string[];
  readonly missing: readonly string[];
}

/** Each pinned third-party command line does its task with a token of `gatehouse connect`, and a default token leads to a helpful error. */
export async function proveConnectedClients(
  options: { readonly only?: readonly string[]; readonly broken?: string; readonly progress?: (line: string) => void } = {},
): Promise<ClientsReport> {
  await using setup = await startClientSetup(options.broken === undefined ? {} : { broken: options.broken });
  const done: Record<string, string[]> = {};
  const wrong: string[] = [];
  const missing: string[] = [];
  for (const driver of drivers.filter(({ id }) => options.only?.includes(id) ?? true)) {
    const found = await installClients(driver.group);
    if ('missing' in found) {
      missing.push(`${driver.id}: ${found.missing}`);
      continue;
    }
    const reports = [await runTask(setup, driver, found.dir)];
    const model = further[driver.id];
    if (model !== undefined) reports.push(await runTask(setup, driver, found.dir, model));
    if (driver.id === 'codex') reports.push(await runCodexExtras(setup, driver, found.dir));
    const output = await runWithDefaultToken(setup, driver, found.dir);
    if (!isGoodDefault(driver, output)) wrong.push(`${driver.id}: default token: ${output.trim().slice(-600)}`);
    done[driver.id] = reports.flatMap((report) => report.done);
    wrong.push(...reports.flatMap((report) => report.wrong));
    options.progress?.(`${driver.id}: ${done[driver.id]?.join(', ') || 'nothing'}`);
  }
  return { done, wrong, missing };
}
