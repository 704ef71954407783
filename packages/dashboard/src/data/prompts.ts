import type { Result } from '@gatehouse/contract';
import { useSession } from './context.ts';
import { type Loaded, useLoad } from './use-load.ts';

export type SavedPrompt = Result<'prompts.list'>['prompts'][number];

/** Loads the saved prompts of the user. */
export function usePrompts(): Loaded<readonly SavedPrompt[]> {
  const { client } = useSession();
  return useLoad(['prompts.list'], async (signal) => (await client.call('prompts.list', {}, { signal })).prompts);
}
