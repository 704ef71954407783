import type { MethodName } from '@gatehouse/contract';
import type { Handlers } from '../kernel/handlers.ts';

/** Administrative methods that store files or texts. The dispatcher refuses methods that start work. */
const storing = [
  'memory.store',
  'skills.create',
  'skills.import',
  'skills.update',
  'skills.upload',
  'workspace.git.commit',
  'workspace.init',
  'workspace.writeFile',
] as const satisfies readonly MethodName[];

/** Returns the handlers with those that store data refused while the disk is nearly full. */
export function requireDiskSpace(handlers: Handlers, assertCanWrite: () => void): Handlers {
  const guarded = storing.map((name) => {
    const handler = handlers[name] as (params: unknown, call: unknown) => unknown;
    const checked = async (params: unknown, call: unknown): Promise<unknown> => {
      assertCanWrite();
      return handler(params, call);
    };
    return [name, checked];
  });
  return { ...handlers, ...Object.fromEntries(guarded) };
}
