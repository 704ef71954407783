import { AppError } from '../../../kernel/app-error.ts';
import type { Db } from '../../../kernel/db/db.ts';

/** A database that its process loses at a write: nothing after that is stored, as after a kill. */
export function mortal(operation: string, committed: boolean, time = 1) {
  const died = Promise.withResolvers<void>();
  let isDead = false;
  let seen = 0;
  const dead = () => Promise.reject(new AppError('unavailable', 'The process is dead'));
  return {
    died: died.promise,
    wrap: (db: Db): Db => ({
      ...db,
      read: (one, input) => (isDead ? dead() : db.read(one, input)),
      telemetry: (one, input) => (isDead ? dead() : db.telemetry(one, input)),
      async write(one, input) {
        if (isDead) return dead();
        const isLast = one.name === operation && (seen += 1) === time;
        const output = isLast && !committed ? undefined : await db.write(one, input);
        if (!isLast) return output as never;
        isDead = true;
        died.resolve();
        return dead();
      },
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    }),
  };
}
