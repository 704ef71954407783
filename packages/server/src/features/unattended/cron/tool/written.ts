import type * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import { payload } from './args.ts';

/** Fences what a tainted agent writes about a job, so that the turns of the job do not take it as instructions. */
export function fenceWritten<T extends { readonly name?: string | undefined; readonly payload?: z.output<ReturnType<typeof payload>> | undefined }>(
  given: T,
  about: string,
  fence: FenceText,
): T {
  if (given.name !== undefined && !/^[\p{L}\p{N} _.-]{1,64}$/u.test(given.name))
    throw new AppError('invalid_params', 'name: after untrusted text, expected at most 64 letters, digits, spaces and ". _ -"');
  if (given.payload?.kind === 'heartbeat_event') {
    const text = fence(given.payload.text, { source: 'cron', job: about });
    const fenced = payload().safeParse({ ...given.payload, text });
    if (!fenced.success) throw new AppError('invalid_params', 'payload.text: too long');
    return { ...given, payload: fenced.data };
  }
  if (given.payload?.kind !== 'agent_turn') return given;
  const message = `A job that you created is due. You had read untrusted text before you wrote its instructions:\n\n${fence(given.payload.message, { source: 'cron', job: about })}`;
  const fenced = payload().safeParse({ ...given.payload, message });
  if (!fenced.success) throw new AppError('invalid_params', 'payload.message: too long');
  return { ...given, payload: fenced.data };
}
