import { derived, type Live } from '../../../kernel/config/live.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { DurableWork, EndWithMessage } from '../durable/api.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import type { InboxApi } from '../inbox/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import type { WebhooksApi } from './api.ts';
import type { WebhooksConfig } from './config.ts';
import { createDeliver, type DeliverDeps } from './deliveries/deliver.ts';
import { createIntake } from './intake/intake.ts';
import { createWebhookMethods } from './methods.ts';
import { rulesOf, strictRule } from './rules/rules.ts';
import { createRunDelivery, deliveryLimits } from './deliveries/run-delivery.ts';
import { deliveryKind, keptMs, maxKept, pruneDeliveries } from './store.ts';

export interface WebhooksDeps extends DeliverDeps {
  readonly config: Live<WebhooksConfig>;
  readonly httpBodyLimitBytes: () => number;
  readonly durable: DurableWork;
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly endWithMessage: EndWithMessage;
}

const firstPruneMs = 60_000;
const pruneMs = 60 * 60_000;
const prunedAtOnce = 500;

/** Accepts webhooks, runs their actions, and keeps them for a while (docs/decisions/0025). */
export function createWebhooks(deps: WebhooksDeps) {
  const { db, clock, log, config, agents } = deps;
  const rules = derived(config, rulesOf);
  const all = derived(config, (section) => (section.token === undefined ? rules() : [...rules(), strictRule(section)]));
  const deliver = createDeliver(deps);
  const ruleOf = (mappingId: string) => all().find(({ mapping }) => mapping.id === mappingId);
  const { run, gaveUp } = createRunDelivery({ ...deps, ruleOf, keysOf: deliver.keysOf });
  deps.durable.handle(deliveryKind, run, { ...deliveryLimits, gaveUp });
  const intake: WebhooksApi = createIntake({
    config,
    httpBodyLimitBytes: deps.httpBodyLimitBytes,
    rules,
    clock,
    traceWork: deps.traceWork,
    accept: deliver.accept,
  });

  const pruning = repeat({
    clock,
    everyMs: pruneMs,
    firstMs: firstPruneMs,
    async run() {
      const dropped = await db.write(pruneDeliveries, { beforeMs: clock.ageNow() - keptMs, kept: maxKept, limit: prunedAtOnce });
      // One batch at a time, so that other writes can run in between.
      return dropped >= prunedAtOnce ? 1_000 : pruneMs;
    },
    onError: (error) => log.error({ err: error }, 'Failed to delete old webhook deliveries'),
  });

  return {
    api: intake,
    methods: createWebhookMethods({ db, clock, config, rules: all, deliver, defaultAgentId: agents.defaultId }),
    /** Problems of the configuration, as sentences for the operator. */
    warnings: all().flatMap(({ mapping: { id, agentId } }) =>
      agentId === undefined || agents.find(agentId) !== undefined
        ? []
        : [`webhooks: agent ${agentId} of mapping ${id} does not exist; deliveries are rejected with 503 until it does`],
    ),
    [Symbol.asyncDispose]: () => pruning[Symbol.asyncDispose](),
  };
}
