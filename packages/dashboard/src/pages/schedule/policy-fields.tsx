import { t } from '../../language.ts';
import { errorOf } from '../../data/field-errors.ts';
import { DraftField } from '../../ui/draft-field.tsx';
import { Field } from '../../ui/parts.tsx';
import type { DraftFieldProps } from './draft-props.ts';
import { continuations, profiles, retentions } from './job-draft.ts';

const continuationLabels: Readonly<Record<(typeof continuations)[number], string>> = {
  heartbeat_excerpt: t('as an excerpt to the next heartbeat'),
  origin_history: t('to the conversation of the delivery'),
};
const paths = ['sessionPolicy', 'continuationMode', 'deliveryTarget', 'wakeGate', 'cacheRetention', 'toolPolicy', 'maxConsecutiveDependencyErrors'];

/** Options of a job: collapsed until opened, or until one of them is invalid. */
export function PolicyFields(props: DraftFieldProps) {
  const wrong = paths.some((path) => errorOf(props.errors, path) !== undefined);
  const isTurn = props.draft.does === 'agent_turn';
  return (
    <details className="part" {...(wrong && { open: true })}>
      <summary>{t('Options')}</summary>
      <div className="schema-fields">
        {isTurn && <TurnFields {...props} />}
        <AfterwardsFields {...props} />
      </div>
      <DeliveryTargetField {...props} />
      {isTurn && <WakeGateFields {...props} />}
    </details>
  );
}

/** What a turn of the job gets: earlier runs, tools, the provider's cache. */
function TurnFields({ draft, change, errors }: DraftFieldProps) {
  return (
    <>
      <DraftField errors={errors} path="sessionPolicy" label={t('Earlier runs in context')} hint={t('1 to 20. Leave empty for none.')}>
        {(own) => <input {...own} type="number" value={draft.history} onChange={(event) => change({ history: event.target.value })} />}
      </DraftField>
      <DraftField errors={errors} path="toolPolicy.profile" label={t('Tools')} hint={t("Limited to the agent's tools.")}>
        {(own) => (
          <select {...own} value={draft.profile} onChange={(event) => change({ profile: profiles.find((one) => one === event.target.value) ?? '' })}>
            <option value="">{t("the agent's tools")}</option>
            {profiles.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </DraftField>
      {draft.profile !== '' && (
        <>
          <DraftField errors={errors} path="toolPolicy.allow" label={t('Also allow')}>
            {(own) => <input {...own} value={draft.allow} onChange={(event) => change({ allow: event.target.value })} />}
          </DraftField>
          <DraftField errors={errors} path="toolPolicy.deny" label={t('Deny')}>
            {(own) => <input {...own} value={draft.deny} onChange={(event) => change({ deny: event.target.value })} />}
          </DraftField>
        </>
      )}
      <DraftField errors={errors} path="cacheRetention" label={t('Provider prompt cache')}>
        {(own) => (
          <select
            {...own}
            value={draft.retention}
            onChange={(event) => change({ retention: retentions.find((one) => one === event.target.value) ?? '' })}
          >
            <option value="">{t("the agent's setting")}</option>
            {retentions.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </DraftField>
    </>
  );
}

/** What happens with a result, and after failures. */
function AfterwardsFields({ draft, change, errors }: DraftFieldProps) {
  return (
    <>
      <DraftField errors={errors} path="continuationMode" label={t('Also send the result')}>
        {(own) => (
          <select
            {...own}
            value={draft.continuation}
            onChange={(event) => change({ continuation: continuations.find((one) => one === event.target.value) ?? '' })}
          >
            <option value="">{t('nowhere else')}</option>
            {continuations.map((one) => (
              <option key={one} value={one}>
                {continuationLabels[one]}
              </option>
            ))}
          </select>
        )}
      </DraftField>
      <DraftField
        errors={errors}
        path="maxConsecutiveDependencyErrors"
        label={t('Pause after consecutive provider failures')}
        hint={t('0: never. Leave empty to use the configured limit.')}
      >
        {(own) => <input {...own} type="number" value={draft.maxErrors} onChange={(event) => change({ maxErrors: event.target.value })} />}
      </DraftField>
    </>
  );
}

/** Destination of results. */
function DeliveryTargetField({ draft, change, errors }: DraftFieldProps) {
  return (
    <DraftField
      errors={errors}
      path="deliveryTarget"
      label={t('Delivery target as JSON')}
      hint={t('{conversation: {conversationScope, conversationRef}, destinationEndpoint}; see session.list. Default: your inbox.')}
    >
      {(own) => (
        <textarea
          {...own}
          className="mono"
          rows={3}
          value={draft.deliveryTarget}
          onChange={(event) => change({ deliveryTarget: event.target.value })}
        />
      )}
    </DraftField>
  );
}

/** A script that decides whether a turn is needed. */
function WakeGateFields({ draft, change, errors }: DraftFieldProps) {
  return (
    <>
      <DraftField
        errors={errors}
        path="wakeGate"
        label={t('Wake gate: script that decides whether a turn is needed')}
        hint={t('Runs in a sandbox. Leave empty to call the model on every run.')}
      >
        {(own) => (
          <textarea
            {...own}
            className="mono"
            rows={4}
            spellCheck={false}
            value={draft.script}
            onChange={(event) => change({ script: event.target.value })}
          />
        )}
      </DraftField>
      {draft.script.trim() !== '' && (
        <div className="field-pair">
          <Field label={t('Language')}>
            {(id) => (
              <select id={id} value={draft.language} onChange={(event) => change({ language: event.target.value === 'ts' ? 'ts' : 'js' })}>
                <option value="js">{t('JavaScript')}</option>
                <option value="ts">{t('TypeScript')}</option>
              </select>
            )}
          </Field>
          <Field label={t('Script timeout in seconds')}>
            {(id) => (
              <input
                id={id}
                type="number"
                min={1}
                max={300}
                value={draft.scriptSeconds}
                onChange={(event) => change({ scriptSeconds: event.target.value })}
              />
            )}
          </Field>
        </div>
      )}
    </>
  );
}
