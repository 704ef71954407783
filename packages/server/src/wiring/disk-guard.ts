import type { MethodName } from '@gatehouse/contract';
import type { Handlers } from '../kernel/handlers.ts';

/** Administrative methods that store files or texts. Methods that begin work are refused by the dispatcher. */
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

/** The same handlers, of which those that store are refused while the disk has too little room. */
export function requireRoom(handlers: Handlers, assertRoomToWrite: () => void): Handlers {
  const guarded = storing.map((name) => {
    const handler = handlers[name] as (params: unknown, call: unknown) => unknown;
    const checked = async (params: unknown, call: unknown): Promise<unknown> => {
      assertRoomToWrite();
      return handler(params, call);
    };
    return [name, checked];
  });
  return { ...handlers, ...Object.fromEntries(guarded) };
}
