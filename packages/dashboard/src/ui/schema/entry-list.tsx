import { t } from '../../language.ts';
import { type ComponentType, useId, useState } from 'react';
import { errorOf } from '../../data/field-errors.ts';
import { plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { Icon } from '../icon.tsx';
import { Badge, Button, IconButton } from '../parts.tsx';
import { useSettingForm } from './form.ts';
import { JsonPart } from './json-part.tsx';
import { isRecord, isSame } from './paths.ts';
import { entrySetting, firstValue, type Setting } from './setting.ts';
import { elementId, partOf, type SettingProps } from './setting-props.tsx';

/** Entries rendered at once. */
const pageSize = 50;

/** The entries of a record, or the items of a list: added, opened, changed and removed one by one. */
export function EntryList({
  setting,
  value,
  stored,
  inForce,
  errors,
  depth = 0,
  View,
  Fields,
}: SettingProps & {
  /** Shows an entry that is a single value. */
  readonly View: ComponentType<SettingProps>;
  /** Shows the keys of an entry. */
  readonly Fields: ComponentType<SettingProps>;
}) {
  const form = useSettingForm();
  const [limit, setLimit] = useState(pageSize);
  const { shape } = setting;
  const keys: readonly (string | number)[] = Array.isArray(value) ? [...value.keys()] : isRecord(value) ? Object.keys(value) : [];
  const add = (key: string | number): void => {
    const entry = entrySetting(setting, key, form.lookup);
    form.set(entry, firstValue(entry));
    form.opened.set(new Set([...form.opened.get(), entry.id]));
  };
  return (
    <div className="entries">
      {keys.slice(0, limit).map((key) => {
        const entry = entrySetting(setting, key, form.lookup);
        const parts = { setting: entry, value: partOf(value, key), stored: partOf(stored, key), inForce: partOf(inForce, key), errors };
        return entry.shape.kind === 'object' ? (
          <Entry key={entry.id} {...parts} depth={depth} Fields={Fields} />
        ) : (
          <View key={entry.id} {...parts} depth={depth + 1} />
        );
      })}
      {keys.length > limit && (
        <Button small onClick={() => setLimit(limit + pageSize)}>
          {t('Show more ({keys})', { keys: keys.length - limit })}
        </Button>
      )}
      {keys.length === 0 && <p className="hint">{t('None.')}</p>}
      {shape.kind === 'record' ? (
        <AddEntry title={setting.title} names={shape.names?.filter((name) => !keys.includes(name))} taken={keys} onAdd={add} />
      ) : (
        <Button small icon="plus" onClick={() => add(keys.length)} label={t('Add to {title}', { title: setting.title })}>
          {t('Add')}
        </Button>
      )}
    </div>
  );
}

function Entry({ Fields, ...props }: SettingProps & { readonly Fields: ComponentType<SettingProps> }) {
  const { setting, value, stored, errors, depth = 0 } = props;
  const form = useSettingForm();
  const isOpen = useStore(form.opened).has(setting.id);
  const [isJson, setJson] = useState(false);
  const bodyId = useId();
  const { name, summary } = describe(setting, value);
  const message = errorOf(errors, setting.id);
  const toggle = (): void => {
    const next = new Set(form.opened.get());
    if (!next.delete(setting.id)) next.add(setting.id);
    form.opened.set(next);
  };
  return (
    <div className="entry" id={elementId(setting)}>
      <div className="entry-head">
        <button type="button" className="entry-toggle" aria-expanded={isOpen} aria-controls={isOpen ? bodyId : undefined} onClick={toggle}>
          <Icon name="chevron" />
          <span className="entry-name">{name}</span>
          <span className="hint cut">{summary}</span>
        </button>
        {stored === undefined ? <Badge tone="accent">{t('new')}</Badge> : !isSame(value, stored) && <Badge tone="accent">{t('changed')}</Badge>}
        {message !== undefined && <Badge tone="bad">{t('check')}</Badge>}
        {isOpen && (
          <Button small look="quiet" label={isJson ? t('Form: {name}', { name }) : t('JSON: {name}', { name })} onClick={() => setJson(!isJson)}>
            {isJson ? t('Form') : t('JSON')}
          </Button>
        )}
        <IconButton icon="trash" label={t('Remove: {name}', { name })} onClick={() => form.set(setting, undefined)} />
      </div>
      {errors.get(setting.id) !== undefined && !isJson && <p className="field-error pad">{errors.get(setting.id)}</p>}
      {isOpen && (
        <div className="entry-body" id={bodyId}>
          {isJson ? <JsonPart setting={setting} value={value} errors={errors} /> : <Fields {...props} depth={depth + 1} />}
        </div>
      )}
    </div>
  );
}

/** Names an entry by its key or id, and says what is set in it. */
function describe(setting: Setting, value: unknown): { readonly name: string; readonly summary: string } {
  const key = setting.path.at(-1);
  const own = isRecord(value) ? value : {};
  const id = own['id'] ?? own['name'] ?? own['path'];
  const name = typeof key === 'string' ? key : typeof id === 'string' ? id : t('Item {key}', { key: Number(key) + 1 });
  const facts = Object.entries(own).flatMap(([one, part]) =>
    ['type', 'transport', 'model', 'action', 'baseUrl', 'url', 'command'].includes(one) && typeof part === 'string' ? [part] : [],
  );
  return { name, summary: facts.length > 0 ? facts.join(' · ') : t('{keys} set', { keys: plural(Object.keys(own).length, 'key') }) };
}

function AddEntry({
  title,
  names,
  taken,
  onAdd,
}: {
  readonly title: string;
  /** The only names that are possible. */
  readonly names: readonly string[] | undefined;
  readonly taken: readonly (string | number)[];
  readonly onAdd: (name: string) => void;
}) {
  const [name, setName] = useState('');
  const isTaken = taken.includes(name.trim());
  if (names?.length === 0) return null;
  const add = (): void => {
    if (name.trim() === '' || isTaken) return;
    onAdd(name.trim());
    setName('');
  };
  return (
    <div className="entry-add">
      {names === undefined ? (
        <input
          aria-label={t('Name of a new entry of {title}', { title })}
          placeholder={t('Name')}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          value={name}
          onChange={({ target }) => setName(target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            add();
          }}
        />
      ) : (
        <select aria-label={t('Name of a new entry of {title}', { title })} value={name} onChange={({ target }) => setName(target.value)}>
          <option value="">{t('Choose…')}</option>
          {names.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
      <Button small icon="plus" disabled={name.trim() === '' || isTaken} onClick={add} label={t('Add to {title}', { title })}>
        {t('Add')}
      </Button>
      {isTaken && <span className="hint">{t('Exists already.')}</span>}
    </div>
  );
}
