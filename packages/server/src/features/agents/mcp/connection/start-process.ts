import { AppError } from '../../../../kernel/app-error.ts';
import { type Jail, type JailedProcess, jailHome, jailPath } from '../../../../kernel/jail.ts';
import type { McpServerConfig } from '../config.ts';

/**
 * Starts programs of stdio servers: in the jail, with only the environment and the folders of the configuration.
 * Fails with `unavailable` where no jail is available.
 */
export function startInJail(jail: () => Promise<Jail>): (config: McpServerConfig) => Promise<JailedProcess> {
  return async ({ command, args, env, cwd, mounts, network, limits }) => {
    if (command === undefined) throw new TypeError('a stdio server has a command');
    const inside = await jail();
    if (inside.unavailable !== undefined)
      throw new AppError('unavailable', `A stdio server runs only in a jail, which is not available here: ${inside.unavailable}`);
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
