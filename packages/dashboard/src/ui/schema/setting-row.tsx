import { t } from '../../language.ts';
import { type ReactNode, useId } from 'react';
import { errorOf } from '../../data/field-errors.ts';
import { bytes, duration } from '../../data/format.ts';
import { Button } from '../parts.tsx';
import { useSettingForm } from './form.ts';
import { isSame } from './paths.ts';
import type { Setting } from './setting.ts';
import { SettingControl } from './setting-control.tsx';
import { elementId, plainText, type SettingProps } from './setting-props.tsx';

/** A key on one line: what it is on the left, its value on the right. */
export function SettingRow({ setting, value, stored, inForce, errors }: SettingProps) {
  const form = useSettingForm();
  const id = useId();
  const message = errorOf(errors, setting.id);
  const isChanged = !isSame(value, stored);
  const fallback = setting.default ?? (setting.isEntry || stored !== undefined ? undefined : inForce);
  const describedBy = [message === undefined ? undefined : `${id}-error`, setting.description === undefined ? undefined : `${id}-hint`, `${id}-meta`];
  return (
    <div className={['setting', isChanged ? 'changed' : '', isLong(setting) ? 'long' : ''].filter(Boolean).join(' ')} id={elementId(setting)}>
      <div className="setting-text">
        <label htmlFor={id}>
          {setting.title}
          {setting.required && <span className="setting-required"> {t('(required)')}</span>}
        </label>
        {setting.description !== undefined && (
          <p className="hint" id={`${id}-hint`}>
            {plainText(setting.description)}
          </p>
        )}
        <p className="setting-facts">
          <code>{setting.id}</code>
          {boundsOf(setting)}
          <span
            className={`setting-apply ${setting.apply}`}
            title={setting.apply === 'live' ? t('In force as soon as it is saved') : t('In force after a restart')}
          >
            {setting.apply}
          </span>
        </p>
      </div>
      <div className="setting-value">
        <SettingControl
          setting={setting}
          value={value}
          fallback={fallback}
          error={message}
          own={{
            id,
            'aria-describedby': describedBy.filter((one) => one !== undefined).join(' '),
            'aria-invalid': message === undefined ? undefined : true,
          }}
          onChange={(next) => form.set(setting, next)}
          onProblem={(problem) => form.report(setting.id, problem)}
        />
        {message !== undefined && (
          <p className="field-error" id={`${id}-error`}>
            {message}
          </p>
        )}
        <div className="setting-meta">
          <span id={`${id}-meta`}>
            {originOf(setting, value, isChanged)}
            {readable(setting, value ?? fallback)}
            {!setting.secret && forceOf({ setting, value, stored, inForce, isWaiting: form.waiting.has(setting.id) })}
          </span>
          <span className="setting-actions">
            {isChanged && (
              <Button small look="quiet" label={t('Undo: {title}', { title: setting.title })} onClick={() => form.set(setting, stored)}>
                {t('Undo')}
              </Button>
            )}
            {value !== undefined && (!isChanged || stored !== undefined) && (!setting.required || setting.isEntry) && (
              <Button
                small
                look="quiet"
                label={setting.isEntry ? t('Remove: {title}', { title: setting.title }) : t('Use default: {title}', { title: setting.title })}
                onClick={() => form.set(setting, undefined)}
              >
                {setting.isEntry ? t('Remove') : t('Use default')}
              </Button>
            )}
          </span>
        </div>
      </div>
    </div>
  );
}

function originOf(setting: Setting, value: unknown, isChanged: boolean): string {
  const { default: given } = setting;
  const lead = given === undefined || setting.isEntry ? '' : t('Default: {given}', { given: shownValue(given) });
  if (value === undefined) return lead === '' ? t('Not set') : lead;
  const names = typeof value === 'string' ? [...value.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name]) => name) : [];
  const origin = names.length > 0 ? t('From {names}', { names: names.join(', ') }) : isChanged ? t('Not saved yet') : t('Set in config.yaml');
  return lead === '' ? origin : `${origin}. ${lead}`;
}

/** Says what is in force where that is not what the file says. */
function forceOf({
  setting,
  value,
  stored,
  inForce,
  isWaiting,
}: Pick<SettingProps, 'setting' | 'value' | 'stored' | 'inForce'> & { readonly isWaiting: boolean }): string {
  if (isWaiting) return `. In force until the restart: ${shownValue(inForce)}`;
  const wanted = stored ?? setting.default;
  if (value !== stored || wanted === undefined || inForce === undefined) return '';
  if (typeof wanted === 'object' || JSON.stringify(wanted) === JSON.stringify(inForce)) return '';
  if (typeof stored === 'string' && stored.includes('${')) return `. In force: ${shownValue(inForce)}`;
  return `. In force: ${shownValue(inForce)}, from the command line or the environment`;
}

function isLong({ shape }: Setting): boolean {
  return (shape.kind === 'text' && shape.long) || shape.kind === 'json';
}

function shownValue(value: unknown): string {
  if (value === '') return 'empty';
  if (value === undefined || value === null) return t('not set');
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(String).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function boundsOf({ shape }: Setting): ReactNode {
  if (shape.kind !== 'number' || (shape.min === undefined && shape.max === undefined)) return null;
  const { min, max } = shape;
  return (
    <span>
      {max === undefined ? t('{min} or more', { min }) : min === undefined ? t('at most {max}', { max }) : t('{min} to {max}', { min, max })}
    </span>
  );
}

/** A long time or size in units that people read. */
function readable({ unit }: Setting, value: unknown): string {
  if (typeof value !== 'number' || value < 1000) return '';
  if (unit === 'ms') return ` (${value === 1000 || value % 1000 === 0 ? '' : '≈ '}${duration(value / 1000)})`;
  return unit === 'bytes' ? ` (${bytes(value)})` : '';
}
