import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Lanes } from '../../../kernel/lane.ts';
import type { Log } from '../../../kernel/log.ts';
import type { ConversationTarget, SessionsApi } from './api.ts';
import { createAlone } from './changes/alone.ts';
import { type ChangingDeps, createChanging } from './changes/changing.ts';
import { createLabels, type LabelDeps } from './changes/labels.ts';
import { type Clearing, type ClearingDeps, createClearing } from './changes/clearing.ts';
import { createIndexer } from './search/indexer.ts';
import { PendingConversations } from './reading/pending.ts';
import { createAddressing } from './reading/reach.ts';
import { anyTainted } from './store.ts';
import { createListing } from './reading/listing.ts';
import { createFeedback } from './reading/past-turns/feedback.ts';
import { createPastTurns } from './reading/past-turns/past-turns.ts';
import { createReading, type ReadingDeps } from './reading/reading.ts';
import { createSearch } from './search/search.ts';

type SessionMethods =
  HandlersOf<`session.${'status' | 'list' | 'history' | 'export' | 'search' | 'delete' | 'reset' | 'reset_conversation' | 'compact' | 'fork' | 'feedback' | 'update' | 'tags' | 'suggest_title'}`>;

/** Built here, for those who use it. */
type Own = 'addressing' | 'alone' | 'indexer' | 'lanes';

export interface SessionsDeps
  extends Omit<ChangingDeps, Own | 'agents'>, Omit<ClearingDeps, Own>, Omit<LabelDeps, Own | 'agents'>, Omit<ReadingDeps, Own> {
  readonly log: Log;
  readonly lanes: Pick<Lanes, 'acquire' | 'of'>;
}

export interface Sessions extends AsyncDisposable {
  readonly api: SessionsApi;
  readonly methods: SessionMethods;
  readonly applyResetPolicy: Clearing['applyResetPolicy'];
  /** Called when a turn of a conversation is accepted; the returned function is called when it has ended. */
  readonly entered: (target: ConversationTarget) => () => void;
  /** Returns whether turns of any of these conversations ever read untrusted text. */
  readonly isTainted: (refs: readonly string[]) => Promise<boolean>;
  /** Call when messages were stored; only records that fact. */
  readonly noticeMessages: () => void;
}

/** Manages conversations: access, messages, search and resets. */
export function createSessions(deps: SessionsDeps): Sessions {
  const pending = new PendingConversations(deps.clock);
  const addressing = createAddressing({ db: deps.db, defaultAgentId: deps.agents.defaultId, pending });
  const indexer = createIndexer(deps);
  const alone = createAlone(deps.lanes);
  const reading = createReading({ ...deps, addressing });
  const clearing = createClearing({ ...deps, addressing, alone });
  const changing = createChanging({ ...deps, addressing, alone, indexer });

  const api: SessionsApi = {
    async target(address, call) {
      if (address.conversationRef === undefined) return { ...addressing.keyOf(address, call), principalId: call.identity.principalId };
      return api.existing(address, call);
    },
    async existing(address, call) {
      const { ref, sessionKey, agentId, principalId } = await addressing.existing(address, call);
      return { ref, sessionKey, agentId, principalId };
    },
    isPending: (ref) => pending.has(ref),
    own: (agentId, call) => addressing.keyOf({ agentId }, call),
    said: reading.said,
    ...createPastTurns({ db: deps.db, addressing, fork: changing.fork }),
  };

  return {
    api,
    methods: {
      ...reading.methods,
      ...createListing({ ...deps, pending }),
      ...createSearch({ ...deps, indexer }),
      ...clearing.methods,
      ...changing.methods,
      ...createLabels({ ...deps, addressing }),
      ...createFeedback({ ...deps, addressing }),
    },
    applyResetPolicy: clearing.applyResetPolicy,
    entered: (target) => pending.enter(target),
    isTainted: (refs) => deps.db.read(anyTainted, { refs }),
    noticeMessages: indexer.notice,
    [Symbol.asyncDispose]: () => indexer[Symbol.asyncDispose](),
  };
}
