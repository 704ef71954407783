import { statfsSync } from 'node:fs';
import type { RootConfig } from '../config-schema.ts';
import { presetNames } from '../features/unattended/webhooks/config.ts';
import { isUniform } from '../features/access/tokens/secret.ts';
import type { Jail } from '../kernel/jail.ts';
import { refuseTool } from '../runtime/tool-policy.ts';
import type { ServerOptions } from '../server-handle.ts';
import type { Foundation } from './foundation.ts';

/** Returns warnings that the server cannot give: only its caller knows the file and the log. */
export function startWarnings(config: RootConfig, context: { readonly logModules: readonly string[] }): string[] {
  const warnings: string[] = [];
  if (config.storage.driver === 'postgres' && config.storage.sharedPath === undefined)
    warnings.push(
      'storage.sharedPath is not set: another node that takes over does not see the workspaces, media and skills of this one, which are in its home folder.',
    );
  for (const name of Object.keys(config.logging.modules))
    if (!context.logModules.includes(name))
      warnings.push(`logging.modules: there is no module "${name}"; there are ${context.logModules.join(', ')}.`);
  for (const name of config.webhooks.presets)
    if (!presetNames.some((known) => known === name))
      warnings.push(`webhooks.presets: there is no preset "${name}", so it is ignored; there are ${presetNames.join(', ')}.`);
  return warnings;
}

/** Warns when agents that may run commands have no jail; without such agents the daemon does not look for one. */
export async function jailWarnings({ exec, agents }: RootConfig, openJail: () => Promise<Pick<Jail, 'unavailable'>>): Promise<string[]> {
  const wanting = Object.entries(agents).flatMap(([id, agent]) =>
    refuseTool({ name: 'exec', risk: 'write' }, agent, 'rpc') === undefined ? [id] : [],
  );
  if (!exec.enabled || wanting.length === 0) return [];
  const { unavailable } = await openJail();
  return unavailable === undefined ? [] : [`Agents that may run commands (${wanting.slice(0, 5).join(', ')}) are refused: no jail: ${unavailable}`];
}

/** Returns the server's own warnings. */
export function serverWarnings({ host, tokens, tls }: RootConfig['gateway'], controlPlaneOnly: boolean): string[] {
  const warnings: string[] = [];
  if (tls === undefined && !['127.0.0.1', 'localhost', '::1'].includes(host))
    warnings.push(`gateway.host is ${host}: others can reach this port, without encryption`);
  for (const token of tokens)
    if (token.scopes.length === 0) warnings.push(`Token "${token.id}" lists no scopes, which means all of them; write ["*"] to say so`);
  for (const token of tokens)
    if (isUniform(token.secret)) warnings.push(`The secret of token "${token.id}" has few different characters: choose a random one`);
  if (controlPlaneOnly) warnings.push('The last three runs crashed within five minutes: agents take no turns until a start after a clean shutdown');
  return warnings;
}

/** Names by the magic number of statfs(2). */
const networkFileSystems: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB',
  0x00c36400: 'Ceph',
};

/** Warns of guarantees that the file system of the data folder lacks. */
export function fileSystemWarnings(dataDir: string, typeOf: (folder: string) => number = (folder) => statfsSync(folder).type): string[] {
  const name = process.platform === 'linux' ? networkFileSystems[typeOf(dataDir)] : undefined;
  if (name === undefined) return [];
  return [
    `${dataDir} is on a network file system (${name}): the database needs a local disk, and the lock may not hold against daemons on other machines. Choose another home folder`,
  ];
}

/** Returns everything that the person at the terminal should know about this start. */
export async function findWarnings(
  { config, home }: Pick<ServerOptions, 'config' | 'home'>,
  { lifetime, warnings, doubt }: Pick<Foundation, 'lifetime' | 'warnings' | 'doubt'>,
  openJail: () => Promise<Pick<Jail, 'unavailable'>>,
): Promise<readonly string[]> {
  return [
    ...serverWarnings(config.gateway, lifetime.controlPlaneOnly),
    ...fileSystemWarnings(home.dataDir),
    ...warnings,
    ...[doubt() ?? []].flat(),
    ...(await jailWarnings(config, openJail)),
  ];
}
