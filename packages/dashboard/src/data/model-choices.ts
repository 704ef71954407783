import type { AnswerEffort } from '@gatehouse/contract';
import { useSession } from './context.ts';
import { type Loaded, useLoad } from './use-load.ts';

export interface OfferedModel {
  readonly name: string;
  readonly efforts: readonly AnswerEffort[];
}

export interface ModelChoices {
  /** The model of the agent. */
  readonly own: OfferedModel;
  /** All models of the catalog; none for a token that may not list them. */
  readonly others: readonly OfferedModel[];
}

/** Loads the models that the next answers of an agent may have. */
export function useModelChoices(agentId: string): Loaded<ModelChoices> {
  const { client } = useSession();
  return useLoad(
    ['model choices', agentId],
    async (signal): Promise<ModelChoices> => {
      const [status, listed] = await client.batch(
        [
          { method: 'session.status', params: agentId === '' ? {} : { agentId } },
          { method: 'models.list', params: {} },
        ],
        { signal },
      );
      if (!status.ok) throw status.error;
      const { model, efforts } = status.result;
      const providers = listed.ok && 'providers' in listed.result ? listed.result.providers : [];
      const others = providers.flatMap(({ name, models }) => models.map((one) => ({ name: `${name}/${one.modelId}`, efforts: one.efforts })));
      return { own: { name: model, efforts }, others };
    },
    { changedBy: ['config:patched'] },
  );
}
