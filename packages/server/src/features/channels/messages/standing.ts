import type { Db } from '../../../kernel/db/db.ts';
import type { Destination } from '../delivery/api.ts';
import type { InstanceConfig } from '../instances/api.ts';
import { rulesOf } from '../../../channels/people.ts';
import { principalOfSender } from '../../../channels/sender-principal.ts';
import { principalOfGroup } from './identity.ts';
import { listApproved } from './store.ts';

export interface StandingDeps {
  readonly db: Db;
  /** The enabled instances by name. */
  readonly instances: () => readonly (readonly [string, InstanceConfig])[];
  readonly principalOfPerson: (name: string) => string;
}

/** Returns whether a principal of the chats may still use agents, for work that was accepted earlier: `chat` is where that came from. */
export function createStanding({ db, instances, principalOfPerson }: StandingDeps) {
  return async (principalId: string, chat: Destination | undefined): Promise<boolean> => {
    for (const [instance, config] of instances()) {
      const { owners, dm } = config;
      const listed = [...owners, ...(dm.policy === 'disabled' ? [] : dm.allowFrom)];
      if (listed.some((senderId) => principalOfSender({ instance, senderId }) === principalId)) return true;
      if (chat?.instance === instance && rulesOf(config, chat.conversationId).isOpen && principalOfGroup(chat) === principalId) return true;
    }
    const pairings = await db.read(listApproved, undefined);
    return pairings.some(({ person, principalId: own }) => (person === null ? own : principalOfPerson(person)) === principalId);
  };
}
