import { AppError } from '../../../../kernel/app-error.ts';
import { type Jail, type JailedProcess, jailHome, jailPath } from '../../../../kernel/jail.ts';
import type { McpServerConfig } from '../config.ts';

/**
 * Starts programs of stdio servers: in the jail, with the environment and the folders that the configuration gives them
 * and no others. Fails with `unavailable` where nothing can be jailed.
 */
export function startInJail(jail: () => Promise<Jail>): (config: McpServerConfig) => Promise<JailedProcess> {
  return async ({ command, args, env, cwd, mounts, network, limits }) => {
    if (command === undefined) throw new TypeError('a stdio server has a command');
    const inside = await jail();
    if (inside.unavailable !== undefined)
      throw new AppError('unavailable', `A stdio server runs in a jail or not at all, and there is none here: ${inside.unavailable}`);
    return inside.run({
      argv: [command, ...args],
      cwd: cwd ?? '/tmp',
      mounts: mounts.map(({ path, to, writable }) => ({ from: path, to: to ?? path, writable })),
      env: { PATH: jailPath, HOME: jailHome, ...env },
      network,
      limits,
    });
  };
}
