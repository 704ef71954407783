import { useSession } from './context.ts';
import { useLoad } from './use-load.ts';

const none: readonly string[] = [];

/** Loads the models of the catalog by the names that a configuration uses; empty until they are loaded, and when they cannot be. */
export function useModelNames(): readonly string[] {
  const { client } = useSession();
  const loaded = useLoad(
    ['model names'],
    async (signal): Promise<readonly string[]> => {
      const listed = await client.call('models.list', {}, { signal });
      return 'providers' in listed ? listed.providers.flatMap(({ name, models }) => models.map(({ modelId }) => `${name}/${modelId}`)) : none;
    },
    { changedBy: ['config:patched'] },
  );
  return loaded.data ?? none;
}
