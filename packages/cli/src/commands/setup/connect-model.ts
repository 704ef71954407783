import type { Client } from '@gatehouse/client';
import { type PlacedProvider, placeProvider, selectModel, testProvider } from '@gatehouse/client/connect-model';
import type { Result } from '@gatehouse/contract';
import { type VendorOffer, vendorOffers } from '@gatehouse/contract/vendor-list';
import { CliError, usageError } from '../../failure.ts';
import type { Io } from '../../io.ts';
import { nearest } from '../../nearest.ts';
import { plainText } from '../../render/plain.ts';
import type { Choice, Prompts } from './prompts.ts';
import type { SetupFlags } from './setup.ts';

type Provider = Result<'providers.list'>['providers'][number];
type Tested = Result<'providers.test'>;

/** The model that the default agent uses from now on. */
export interface ConnectedModel {
  readonly provider: string;
  readonly model: string;
  readonly verdict: Tested['verdict'] | 'kept';
  /** Name of the secret that holds the key, when one was stored. */
  readonly key?: string | undefined;
}

export interface ConnectDeps {
  readonly client: Client;
  readonly flags: SetupFlags;
  readonly io: Io;
  readonly prompts: Prompts;
  readonly signal: AbortSignal;
}

/** What to connect: nothing of it is stored before a call with it has succeeded. */
interface Candidate {
  readonly offer: VendorOffer;
  readonly entry: PlacedProvider;
}

const keep = 'keep';

/** Connects a model: asks for what no flag says, tests it with a real call, and stores it when it works. */
export async function connectModel(deps: ConnectDeps): Promise<ConnectedModel> {
  const { client, flags, io, prompts } = deps;
  const { providers } = await client.call('providers.list', {});
  const present = await presentModel(client);
  const isAsked = io.stdin.isTTY === true;
  if (flags.vendor === undefined && present !== undefined && !isAsked) return present;
  if (flags.vendor === undefined && !isAsked)
    throw usageError('No model is connected: pass --vendor.', 'Such as: gatehouse setup --vendor openai --key-env OPENAI_API_KEY');
  let vendor = flags.vendor === undefined ? await askVendor(prompts, providers, present) : flags.vendor;
  for (;;) {
    if (vendor === keep && present !== undefined) return present;
    const candidate = await readCandidate(findOffer(vendor), providers, deps);
    const decided = await testUntilDecided(candidate, providers, deps);
    if (decided !== undefined) {
      const {
        candidate: { entry },
        tested: { model, verdict },
      } = decided;
      // Without the signal: Ctrl-C takes effect when all of it is stored.
      return { provider: entry.id, model, verdict, key: await selectModel(client, entry, model) };
    }
    vendor = await askVendor(prompts, providers, present);
  }
}

/** Returns the model of the default agent; undefined when it is the built-in offline one. */
async function presentModel(client: Client): Promise<ConnectedModel | undefined> {
  const { primaryModel, primaryProvider: provider } = await client.call('agent.getOperationModels', {});
  return provider === 'offline' ? undefined : { provider, model: primaryModel.slice(provider.length + 1), verdict: 'kept' };
}

const hintOfKind: Readonly<Partial<Record<VendorOffer['kind'], string>>> = {
  local: 'on this machine, no key',
  own: 'any other server, by its address',
};

async function askVendor(prompts: Prompts, providers: readonly Provider[], present: ConnectedModel | undefined): Promise<string> {
  const choices: Choice[] = vendorOffers.map(({ type, name, kind }) => {
    const found = providers.find((one) => one.type === type);
    const hint = found === undefined ? hintOfKind[kind] : hintOf(found);
    return { value: type, label: name, ...(hint !== undefined && { hint }) };
  });
  if (present !== undefined) choices.unshift({ value: keep, label: `Keep ${plainText(`${present.provider}/${present.model}`)}`, hint: 'connected' });
  return prompts.select({ message: 'Which model provider?', choices });
}

const hintOf = ({ source, keys }: Provider): string =>
  source === 'local_server' ? 'found on this machine' : source === 'environment' ? `key found: ${keys[0]?.name ?? 'environment'}` : 'connected';

function findOffer(vendor: string): VendorOffer {
  const offer = vendorOffers.find(({ type }) => type === vendor);
  if (offer !== undefined) return offer;
  const types = vendorOffers.map(({ type }) => type);
  const meant = nearest(vendor, types);
  throw usageError(`Unknown vendor ${JSON.stringify(vendor)}: expected ${types.join(', ')}.`, meant && `Did you mean \`--vendor ${meant}\`?`);
}

async function readCandidate(offer: VendorOffer, providers: readonly Provider[], deps: ConnectDeps): Promise<Candidate> {
  const { flags } = deps;
  const known = providers.find(({ type }) => type === offer.type);
  const baseUrl = flags.baseUrl ?? (offer.kind === 'own' ? await askAddress(offer, known?.baseUrl, deps) : undefined);
  const entry = placeProvider({ type: offer.type, baseUrl }, providers);
  const needsKey = offer.kind !== 'local' && entry.existing?.source !== 'environment';
  const key = needsKey || flags.keyEnv !== undefined || flags.keyStdin === true ? await readKey(offer, entry.existing, deps) : undefined;
  return { offer, entry: { ...entry, key } };
}

function askAddress({ name, address }: VendorOffer, initial: string | undefined, { prompts, io }: ConnectDeps): Promise<string> {
  if (io.stdin.isTTY !== true) throw usageError(`${name} has no default address: pass --base-url.`);
  return prompts.text({
    message: `Address of ${name}`,
    initial: initial ?? address,
    placeholder: 'such as http://127.0.0.1:8000/v1',
    check: (value) => (isAddress(value) ? undefined : 'Expected http://… or https://…'),
  });
}

const isAddress = (text: string): boolean => /^https?:$/.test(URL.parse(text.trim())?.protocol ?? '');

/** Reads a key from where a flag says, else asks for it. It is never an argument: other users can read a command line. */
async function readKey(offer: VendorOffer, existing: Provider | undefined, { flags, io, prompts }: ConnectDeps): Promise<string | undefined> {
  if (flags.keyEnv !== undefined) {
    const value = io.env[flags.keyEnv]?.trim() ?? '';
    if (value === '') throw usageError(`--key-env: the variable ${flags.keyEnv} is not set.`);
    return value;
  }
  if (flags.keyStdin === true) {
    if (io.stdin.isTTY === true) throw usageError('--key-stdin: standard input is a terminal.', 'Omit it: the key is asked for, and not shown.');
    const { text } = await import('node:stream/consumers');
    const value = (await text(io.stdin)).trim();
    if (value === '')
      throw usageError('--key-stdin: standard input is empty.', 'Such as: printf %s "$KEY" | gatehouse setup --vendor openai --key-stdin');
    return value;
  }
  const hasOne = (existing?.keys.length ?? 0) > 0;
  if (io.stdin.isTTY !== true) {
    if (hasOne || offer.kind === 'own') return undefined;
    throw usageError(`${offer.name} needs a key: pass --key-env NAME or --key-stdin.`);
  }
  return askKey(offer, hasOne, prompts);
}

async function askKey(offer: VendorOffer, mayBeEmpty: boolean, prompts: Prompts): Promise<string | undefined> {
  const hint = mayBeEmpty
    ? 'Enter keeps the present one'
    : offer.kind === 'own'
      ? 'Enter for none'
      : offer.keyPage === undefined
        ? undefined
        : `from ${offer.keyPage}`;
  for (;;) {
    const key = (await prompts.secret(`API key${hint === undefined ? '' : ` (${hint})`}`)).trim();
    if (key !== '') return key;
    if (mayBeEmpty || offer.kind === 'own') return undefined;
    prompts.failure('The key is empty.');
  }
}

/** What a call has shown to work, or what the person wants in spite of it. */
interface Decided {
  readonly candidate: Candidate;
  readonly tested: Tested;
}

/**
 * Tests until the selected model works or the person wants another vendor (undefined). Without a terminal a failure is
 * final, and the tested model is the selected one.
 */
async function testUntilDecided(first: Candidate, providers: readonly Provider[], deps: ConnectDeps): Promise<Decided | undefined> {
  const { client, flags, io, prompts, signal } = deps;
  const isAsked = io.stdin.isTTY === true;
  let candidate = first;
  let model = flags.model;
  for (;;) {
    prompts.note(`Testing ${candidate.offer.name}${model === undefined ? '' : `, model ${plainText(model)}`}, with one short call …`);
    const tested = await testProvider(client, candidate.entry, { model, signal });
    if (works(tested)) {
      prompts.success(`${tested.message}.`);
      const chosen = isAsked && model === undefined && hasChoice(tested) ? await askModel(tested, deps) : tested.model;
      if (chosen === tested.model) return { candidate, tested };
      model = chosen;
      continue;
    }
    if (!isAsked) throw testFailure(tested);
    prompts.failure(failureText(tested));
    if (tested.verdict === 'model_unknown') {
      model = await askModel(tested, deps);
      continue;
    }
    const isKey = tested.verdict === 'key_refused' && candidate.offer.kind !== 'local';
    const next = isKey ? 'again' : await askNext(tested, prompts);
    if (next === 'another') return undefined;
    if (next === 'use') return { candidate, tested };
    candidate = await again(candidate, tested, providers, deps);
  }
}

const hasChoice = ({ models, model }: Tested): boolean => models.length !== 1 || models[0] !== model;

/** Asks again for what the provider did not accept. */
async function again({ offer, entry }: Candidate, tested: Tested, providers: readonly Provider[], deps: ConnectDeps): Promise<Candidate> {
  if (tested.verdict === 'key_refused') return { offer, entry: { ...entry, key: (await askKey(offer, false, deps.prompts)) ?? entry.key } };
  if (offer.kind === 'hosted') return { offer, entry };
  const baseUrl = await askAddress(offer, entry.baseUrl ?? entry.existing?.baseUrl, deps);
  return { offer, entry: placeProvider({ type: offer.type, baseUrl, key: entry.key }, providers) };
}

async function askNext({ verdict }: Tested, prompts: Prompts): Promise<'again' | 'another' | 'use'> {
  // The key and the address are right in these two: the model answers later.
  const mayUse = verdict === 'no_credit' || verdict === 'rate_limited';
  const next = await prompts.select({
    message: 'What now?',
    choices: [
      { value: 'again', label: 'Try again' },
      { value: 'another', label: 'Use another provider' },
      ...(mayUse ? [{ value: 'use', label: 'Connect it anyway' }] : []),
    ],
  });
  return next === 'another' || next === 'use' ? next : 'again';
}

const works = ({ verdict }: Tested): boolean => verdict === 'ok' || verdict === 'slow';

/** Selects the model: those that the provider lists, the tested one first. */
async function askModel({ models, model, verdict }: Tested, { prompts }: ConnectDeps): Promise<string> {
  if (models.length === 0)
    return prompts.text({
      message: 'Model, as the provider names it',
      initial: verdict === 'model_unknown' ? undefined : model,
      check: (value) => (value.trim() === '' ? 'Expected a name' : undefined),
    });
  const names = models.includes(model) || verdict === 'model_unknown' ? models : [model, ...models];
  return prompts.select({
    message: 'Which model?',
    choices: names.map((name) => ({ value: name, label: plainText(name), ...(name === model && { hint: 'recommended' }) })),
    initial: names.includes(model) ? model : undefined,
  });
}

function failureText({ message, cause, nextStep }: Tested): string {
  return [`${message}.`, cause, nextStep === undefined ? undefined : `${nextStep}.`]
    .flatMap((line) => (line === undefined ? [] : [plainText(line)]))
    .join('\n');
}

function testFailure({ verdict, message, cause, nextStep }: Tested): CliError {
  return new CliError([`${message}.`, ...(cause === undefined ? [] : [cause])].map(plainText).join(' '), {
    code: verdict,
    hint: nextStep && `${plainText(nextStep)}.`,
  });
}
