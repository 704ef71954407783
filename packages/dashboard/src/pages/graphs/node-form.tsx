import { t } from '../../language.ts';
import { errorOf, type FieldErrors } from '../../data/field-errors.ts';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Field } from '../../ui/parts.tsx';
import { AgentEntries, AgentSelect } from './agent-fields.tsx';
import type { AgentEntry, ConfigValue, DraftNode, GraphDraft } from './draft.ts';
import { Findings } from './findings.tsx';
import type { Problems } from './problems.ts';
import { fieldsOf, nodeTypes, type TypeField } from './type-fields.ts';
import { useInView } from './use-in-view.ts';
import { typeNames } from './labels.ts';

const barriers = {
  '': t('all of them completed'),
  all: t('all of them completed'),
  majority: t('more than half completed'),
  'best-effort': t('at least one completed'),
};
const contexts = { '': t('in full'), full: t('in full'), summary: t('beginning only'), refs: t('names only'), none: 'none' };

interface FieldsProps {
  readonly node: DraftNode;
  readonly errors: FieldErrors;
  readonly onChange: (part: Partial<DraftNode>) => void;
}

/** Edits one node. */
export function NodeForm({
  draft,
  node,
  problems: { errors, warnings },
  onChange,
  onRemove,
}: {
  readonly draft: GraphDraft;
  readonly node: DraftNode;
  readonly problems: Problems;
  readonly onChange: (part: Partial<DraftNode>) => void;
  readonly onRemove: () => void;
}) {
  const part = useInView();
  const others = draft.nodes.filter(({ key }) => key !== node.key);
  return (
    <section ref={part} className="panel" aria-label={t('Node {id}', { id: node.id })}>
      <Findings errors={errors} warnings={warnings} />
      <TextField
        node={node}
        errors={errors}
        path="node_id"
        label={t('Node name')}
        name="id"
        hint={t('Letters, digits, "_" and "-".')}
        onChange={onChange}
      />
      <Field label={t('Type')}>
        {(id) => (
          <select id={id} value={node.type} onChange={(event) => onChange({ type: nodeTypes.find((type) => type === event.target.value) ?? '' })}>
            <option value="">{t('Task for one agent')}</option>
            {nodeTypes.map((type) => (
              <option key={type} value={type}>
                {typeNames[type]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DraftField
        errors={errors}
        path="task"
        label={t('Task')}
        hint={t('{{name.result}} inserts the result of a node that this one depends on, ${NAME} a variable.')}
      >
        {(own) => <textarea {...own} rows={5} value={node.task} onChange={(event) => onChange({ task: event.target.value })} />}
      </DraftField>
      {node.type === '' ? (
        <DraftField errors={errors} path="agent" label={t('Agent')}>
          {(own) => <AgentSelect own={own} value={node.agent} empty={t('The default agent')} onChange={(agent) => onChange({ agent })} />}
        </DraftField>
      ) : (
        fieldsOf(node.type).map(([name, field]) => (
          <ConfigField
            key={`${node.type} ${name}`}
            name={name}
            field={field}
            errors={errors}
            value={node.config[name]}
            onChange={(value) => onChange({ config: { ...node.config, [name]: value } })}
          />
        ))
      )}
      <DependsOn node={node} others={others} error={errorOf(errors, 'depends_on')} onChange={(dependsOn) => onChange({ dependsOn })} />
      <MoreFields node={node} errors={errors} onChange={onChange} />
      <div className="actions">
        <Button icon="trash" small onClick={onRemove}>
          {t('Remove node')}
        </Button>
      </div>
    </section>
  );
}

/** Settings that most nodes leave at their defaults. */
function MoreFields(props: FieldsProps) {
  const { node, onChange } = props;
  return (
    <details className="part">
      <summary>{t('More')}</summary>
      <Field label={t('Starts when all dependencies have finished and')}>
        {(id) => (
          <select
            id={id}
            value={node.barrier}
            onChange={({ target: { value } }) =>
              onChange({ barrier: value === 'all' || value === 'majority' || value === 'best-effort' ? value : '' })
            }
          >
            {Object.entries(barriers).flatMap(([value, label]) => (value === 'all' ? [] : [<Choice key={value} value={value} label={label} />]))}
          </select>
        )}
      </Field>
      <Field label={t('Results passed to this node')}>
        {(id) => (
          <select
            id={id}
            value={node.contextMode}
            onChange={({ target: { value } }) =>
              onChange({ contextMode: value === 'full' || value === 'summary' || value === 'refs' || value === 'none' ? value : '' })
            }
          >
            {Object.entries(contexts).flatMap(([value, label]) => (value === 'full' ? [] : [<Choice key={value} value={value} label={label} />]))}
          </select>
        )}
      </Field>
      <div className="field-pair">
        <NumberField {...props} path="retries" label={t('Retries')} name="retries" hint={t('After a failure; at most 3.')} />
        <NumberField {...props} path="timeout_ms" label={t('Timeout in seconds')} name="timeoutSeconds" />
      </div>
      <div className="field-pair">
        <NumberField {...props} path="max_steps" label={t('Maximum steps')} name="maxSteps" />
        <TextField {...props} path="model" label={t('Model')} name="model" />
      </div>
    </details>
  );
}

interface NamedField<Name extends keyof DraftNode> extends FieldsProps {
  readonly path: string;
  readonly label: string;
  readonly name: Name;
  readonly hint?: string;
}

function TextField({ node, errors, onChange, path, label, name, hint }: NamedField<'id' | 'model'>) {
  return (
    <DraftField errors={errors} path={path} label={label} hint={hint}>
      {(own) => <input {...own} className="mono" value={node[name]} onChange={(event) => onChange({ [name]: event.target.value })} />}
    </DraftField>
  );
}

function NumberField({ node, errors, onChange, path, label, name, hint }: NamedField<'timeoutSeconds' | 'maxSteps' | 'retries'>) {
  return (
    <DraftField errors={errors} path={path} label={label} hint={hint}>
      {(own) => <input {...own} inputMode="numeric" value={node[name]} onChange={(event) => onChange({ [name]: event.target.value })} />}
    </DraftField>
  );
}

function Choice({ value, label }: { readonly value: string; readonly label: string }) {
  return <option value={value}>{label}</option>;
}

function DependsOn({
  node,
  others,
  error,
  onChange,
}: {
  readonly node: DraftNode;
  readonly others: readonly DraftNode[];
  readonly error: string | undefined;
  readonly onChange: (dependsOn: readonly string[]) => void;
}) {
  if (others.length === 0) return null;
  return (
    <fieldset className="field">
      <legend>{t('Depends on')}</legend>
      <div className="graph-depends">
        {others.map(({ key, id }) => (
          <label key={key} className="check">
            <input
              type="checkbox"
              checked={node.dependsOn.includes(key)}
              onChange={(event) => onChange(event.target.checked ? [...node.dependsOn, key] : node.dependsOn.filter((one) => one !== key))}
            />
            <span className="cut">{id}</span>
          </label>
        ))}
      </div>
      {error !== undefined && <p className="field-error">{error}</p>}
    </fieldset>
  );
}

function ConfigField({
  name,
  field,
  errors,
  value,
  onChange,
}: {
  readonly name: string;
  readonly field: TypeField;
  readonly errors: FieldErrors;
  readonly value: ConfigValue | undefined;
  readonly onChange: (value: ConfigValue) => void;
}) {
  const path = `type_config.${name}`;
  if (field.kind === 'agents') {
    const entries: readonly AgentEntry[] = typeof value === 'object' ? value : [];
    return (
      <AgentEntries
        label={field.label}
        hint={field.hint}
        error={errorOf(errors, path)}
        entries={entries}
        withSuffix={field.withSuffix === true}
        onChange={onChange}
      />
    );
  }
  const text = typeof value === 'string' ? value : '';
  return (
    <DraftField errors={errors} path={path} label={field.label} hint={field.hint}>
      {(own) =>
        field.kind === 'agent' ? (
          <AgentSelect own={own} value={text} empty={field.optional === true ? t('None') : undefined} onChange={onChange} />
        ) : field.kind === 'text' ? (
          <textarea {...own} rows={3} value={text} onChange={(event) => onChange(event.target.value)} />
        ) : (
          <input
            {...own}
            {...(field.kind === 'number' && { inputMode: 'numeric' as const })}
            value={text}
            onChange={(event) => onChange(event.target.value)}
          />
        )
      }
    </DraftField>
  );
}
