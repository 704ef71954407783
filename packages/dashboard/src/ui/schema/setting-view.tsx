import { t } from '../../language.ts';
import { memo, type ReactNode, useId, useMemo, useState } from 'react';
import { Badge, Button } from '../parts.tsx';
import { EntryList } from './entry-list.tsx';
import { useSettingForm } from './form.ts';
import { JsonPart } from './json-part.tsx';
import { isSame } from './paths.ts';
import { childSettings, type Setting } from './setting.ts';
import { elementId, partOf, plainText, type SettingProps } from './setting-props.tsx';
import { SettingRow } from './setting-row.tsx';

/** A key with its title, description, control and origin; a section with the keys below it. */
export const SettingView = memo(function SettingView(props: SettingProps) {
  const { kind } = props.setting.shape;
  if (kind === 'object') return <SettingGroup {...props} />;
  if (kind === 'record' || kind === 'items') return <EntryGroup {...props} />;
  return <SettingRow {...props} />;
});

/** The keys of a section, simple ones first. */
export function SettingFields({ setting, value, stored, inForce, errors, depth = 0 }: SettingProps) {
  const { lookup } = useSettingForm();
  const settings = useMemo(() => {
    const all = childSettings(setting, lookup);
    const isSimple = ({ shape: { kind } }: Setting): boolean => !(kind === 'object' || kind === 'record' || kind === 'items');
    return [...all.filter(isSimple), ...all.filter((one) => !isSimple(one))];
  }, [setting, lookup]);
  return settings.map((one) => {
    const name = String(one.path.at(-1));
    return (
      <SettingView
        key={one.id}
        setting={one}
        value={partOf(value, name)}
        stored={partOf(stored, name)}
        inForce={partOf(inForce, name)}
        errors={errors}
        depth={depth}
      />
    );
  });
}

function SettingGroup(props: SettingProps) {
  const { setting, depth = 0 } = props;
  return (
    <Group {...props}>
      <SettingFields {...props} setting={setting} depth={depth + 1} />
    </Group>
  );
}

function EntryGroup(props: SettingProps) {
  return (
    <Group {...props}>
      <EntryFields {...props} />
    </Group>
  );
}

/** The entries of a record, or the items of a list. */
export function EntryFields(props: SettingProps) {
  return <EntryList {...props} View={SettingView} Fields={SettingFields} />;
}

/** A heading with what is below it, which can be edited as JSON instead. */
function Group({ setting, value, stored, errors, depth = 0, children }: SettingProps & { readonly children: ReactNode }) {
  const form = useSettingForm();
  const [isJson, setJson] = useState(false);
  const id = useId();
  const message = errors.get(setting.id);
  const Heading = depth === 0 ? 'h3' : 'h4';
  return (
    <section className="setting-group" aria-labelledby={id} id={elementId(setting)}>
      <header>
        <div>
          <Heading id={id}>
            {setting.title} {setting.required && <Badge>{t('required')}</Badge>}
          </Heading>
          {setting.description !== undefined && <p className="hint">{plainText(setting.description)}</p>}
        </div>
        {!isSame(value, stored) && (
          <Button small look="quiet" label={t('Undo: {title}', { title: setting.title })} onClick={() => form.set(setting, stored)}>
            {t('Undo')}
          </Button>
        )}
        <Button
          small
          look="quiet"
          label={isJson ? t('Form: {title}', { title: setting.title }) : t('JSON: {title}', { title: setting.title })}
          onClick={() => setJson(!isJson)}
        >
          {isJson ? t('Form') : t('JSON')}
        </Button>
      </header>
      {message !== undefined && <p className="field-error">{message}</p>}
      {isJson ? <JsonPart setting={setting} value={value} errors={errors} /> : <div className="setting-group-body">{children}</div>}
    </section>
  );
}
