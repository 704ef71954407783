import { presetNames, type PresetName, strictId, type WebhookMapping, type WebhooksConfig } from '../config.ts';
import { principalOf } from '../intake/identity.ts';
import { normalizePath } from './match.ts';
import type { ReadingRule } from '../intake/read-delivery.ts';
import type { SignaturePolicy } from '../intake/signature.ts';

const defaultHeader = 'x-webhook-signature';

/** One rule with all defaults applied. */
export interface Rule {
  readonly mapping: WebhookMapping;
  /** Shared by all rules with the same policy. */
  readonly policy: SignaturePolicy;
  /** Principal of its turns. */
  readonly principalId: string;
  readonly reading: ReadingRule;
  /** Whether reading a delivery uses its headers. */
  readonly readsHeaders: boolean;
  /** Whether the rule comes from a configured preset or the strict route, not from a mapping. */
  readonly isBuiltIn: boolean;
}

/**
 * Returns the rules of a configuration in evaluation order. Presets without a mapping come before the first mapping that
 * matches every path, so that it does not take their deliveries, and after a mapping of the same path.
 */
export function rulesOf(config: WebhooksConfig): readonly Rule[] {
  const presets = presetNames.filter((name) => config.presets.includes(name)).map((preset) => presetMapping(preset, config));
  const catchAll = config.mappings.findIndex(({ match, preset }) => match.path === undefined && preset === undefined);
  const at = catchAll === -1 ? config.mappings.length : catchAll;
  const policies = new Map<string, SignaturePolicy>();
  const toRule = (mapping: WebhookMapping, isBuiltIn: boolean): Rule => {
    const path = mapping.match.path ?? (isBuiltIn ? undefined : mapping.preset);
    const match = path === undefined ? mapping.match : { ...mapping.match, path: normalizePath(path) };
    const own = policyOf(mapping, config);
    const policy = policies.get(JSON.stringify(own)) ?? own;
    policies.set(JSON.stringify(policy), policy);
    return ruleOf({ ...mapping, match }, policy, isBuiltIn);
  };
  return [
    ...config.mappings.slice(0, at).map((mapping) => toRule(mapping, false)),
    ...presets.map((mapping) => toRule(mapping, true)),
    ...config.mappings.slice(at).map((mapping) => toRule(mapping, false)),
  ];
}

/** Returns the rule for deliveries of the strict route that no mapping matches. */
export function strictRule(config: WebhooksConfig): Rule {
  const mapping = plainMapping(strictId, { path: strictId });
  return ruleOf(mapping, policyOf(mapping, config), true);
}

function ruleOf(mapping: WebhookMapping, policy: SignaturePolicy, isBuiltIn: boolean): Rule {
  const { id, match, preset, sessionKey, messageTemplate, dedupeKey } = mapping;
  return {
    mapping,
    policy,
    principalId: principalOf(id),
    reading: { id, match, preset, sessionKey, messageTemplate, dedupeKey },
    readsHeaders: preset === 'github' || [sessionKey, messageTemplate, dedupeKey].some((template) => template?.includes('headers')),
    isBuiltIn,
  };
}

function presetMapping(preset: PresetName, config: WebhooksConfig): WebhookMapping {
  const isTaken = config.mappings.some(({ id }) => id === preset);
  return { ...plainMapping(isTaken ? `${preset}-preset` : preset, { path: preset }), preset };
}

function plainMapping(id: string, match: WebhookMapping['match']): WebhookMapping {
  return { id, match, action: 'agent', replay: 'exact', allowUnauthenticated: false };
}

function policyOf(mapping: WebhookMapping, config: WebhooksConfig): SignaturePolicy {
  const secret = mapping.secret ?? config.token;
  if (secret === undefined) return { kind: 'none' };
  if (mapping.replay === 'signed') return { kind: 'standard', secret, maxAgeSec: config.maxAgeSec };
  const isGithub = mapping.preset === 'github';
  return {
    kind: 'hmac',
    secret,
    header:
      mapping.signatureHeader ??
      mapping.headerName ??
      (isGithub ? 'x-hub-signature-256' : (config.signatureHeader ?? config.headerName ?? defaultHeader)),
    algorithm: mapping.algorithm ?? (isGithub ? 'sha256' : config.algorithm),
    // GitHub sends no timestamp.
    ...(!isGithub && {
      timestamp: {
        header: config.timestampHeader,
        maxAgeSec: config.maxAgeSec,
        isRequired: config.requireTimestamp || config.signedTimestamp,
        isSigned: config.signedTimestamp,
      },
    }),
  };
}

/** Returns whether webhooks are enabled; the strict route then answers too. */
export function isEnabled({ enabled, token, presets, mappings }: WebhooksConfig): boolean {
  return enabled ?? (token !== undefined || presets.length > 0 || mappings.length > 0);
}
