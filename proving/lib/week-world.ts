import * as z from 'zod';
import type { Tool } from '@gatehouse/server';
import type { FakeAnswer, FakeRequest } from '../../packages/testkit/src/fake-provider.ts';
import { answerTo, noncesIn } from './provider.ts';
import type { Random } from './random.ts';

/** One run of the server. Once it is dead, nothing that it does counts, and nothing is returned to it. */
export interface Generation {
  alive: boolean;
}

export const happenings = ['asked', 'charging', 'charged'] as const;
type Happening = (typeof happenings)[number];

/** The world outside of the server in a virtual week: the model, and a tool that charges money. */
export interface World {
  /** The charges, in order. */
  readonly charges: string[];
  /** The turn of each charge: a resumed turn is the same one. */
  readonly chargedBy: string[];
  /** Model calls without a cause. */
  readonly ruleless: string[];
  /** Model calls that were made to fail; a failing model is paused, so that other calls fail too. */
  readonly faults: () => number;
  readonly calls: () => number;
  /** Lets this fault happen at its next chance. */
  next(what: Happening): Promise<void>;
  /** Ends all faults. */
  calm(): void;
  answer(generation: Generation): (request: FakeRequest) => FakeAnswer | undefined;
  tools(generation: Generation): readonly Tool[];
}

/** Marks in messages, by which the model recognises the requester. */
export const words = {
  charge: 'Please charge',
  note: 'Please note',
  rounds: 'Please do the rounds',
  read: 'Please read the mail',
  beat: 'Look after the house.',
  checklist: '- Water the plants.',
  never: 'This must not be said',
} as const;

/** Model of an idle agent: no call of it has a reason. */
export const idleModel = 'mock-other';

const Body = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown(), tool_calls: z.unknown().optional() })),
});

export function createWorld(random: Random, faultRate: number): World {
  const charges: string[] = [];
  const chargedBy: string[] = [];
  const ruleless: string[] = [];
  const awaited = new Map<Happening, PromiseWithResolvers<void>>();
  const happened = (what: Happening): void => {
    awaited.get(what)?.resolve();
    awaited.delete(what);
  };
  let calls = 0;
  let faults = 0;
  let reports = 0;
  let isCalm = false;

  /** Long enough for a crash to happen meanwhile. */
  const moment = () => new Promise<void>((resolve) => setTimeout(resolve, random.int(15)));

  function answerOf({ model, messages }: z.output<typeof Body>): FakeAnswer {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const said = JSON.stringify(messages[asked] ?? '');
    const hasCharged = messages.slice(asked).some(({ tool_calls: made }) => made !== undefined);
    const nonces = noncesIn(said);
    const charge = (what: string): FakeAnswer =>
      hasCharged ? { text: answerTo(what) } : { toolCalls: [{ id: 'charge_1', name: 'charge', arguments: JSON.stringify({ what }) }] };
    if (model.includes(idleModel) || said.includes(words.never)) ruleless.push(said.slice(0, 300));
    else if (said.includes(words.beat)) {
      if (nonces.length > 0) return { text: nonces.map(answerTo).join('\n') };
      if (said.includes(words.checklist)) return { text: random.int(3) === 0 ? `The plants are dry (${(reports += 1)})` : 'HEARTBEAT_OK' };
      ruleless.push(said.slice(0, 300));
    } else if (said.includes(words.rounds)) return charge('rounds');
    else if (said.includes(words.read)) return { text: 'Nothing new' };
    else if (said.includes(words.charge)) return charge(nonces[0] ?? 'nothing');
    else if (said.includes(words.note)) return { text: answerTo(nonces[0] ?? 'nothing') };
    else ruleless.push(said.slice(0, 300));
    return { text: 'Nothing' };
  }

  function fault(): FakeAnswer | undefined {
    if (isCalm || random.next() >= faultRate) return undefined;
    faults += 1;
    const ways: readonly FakeAnswer[] = [
      { status: 500, error: { message: 'An error' } },
      { status: 503, error: { message: 'Overloaded' } },
      { status: 429, error: { message: 'Too many requests' }, headers: { 'retry-after': '30' } },
      { status: 200, body: '{"choices": [', contentType: 'application/json' },
      { hang: true },
    ];
    return ways[random.int(ways.length)];
  }

  return {
    charges,
    chargedBy,
    ruleless,
    faults: () => faults,
    calls: () => calls,
    next(what) {
      const waiting = awaited.get(what) ?? Promise.withResolvers<void>();
      awaited.set(what, waiting);
      return waiting.promise;
    },
    calm: () => void (isCalm = true),
    answer: (generation) => (request) => {
      if (!generation.alive) return { hang: true };
      if (!request.path.endsWith('/chat/completions')) return undefined;
      calls += 1;
      happened('asked');
      return fault() ?? answerOf(Body.parse(request.body));
    },
    tools: (generation) => [
      {
        name: 'charge',
        description: 'Charges somebody.',
        args: z.strictObject({ what: z.string() }),
        risk: 'read',
        effect: 'once',
        timeoutMs: 60_000,
        async run(args, { signal, turnId }) {
          happened('charging');
          await moment();
          if (!generation.alive) {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            return { content: 'never' };
          }
          charges.push(z.object({ what: z.string() }).parse(args).what);
          chargedBy.push(turnId);
          happened('charged');
          await moment();
          return { content: 'charged' };
        },
      },
    ],
  };
}
