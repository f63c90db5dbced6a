"""The configuration: one YAML file, read into frozen models whose defaults are the defaults.

Precedence, highest first: ``GRAFTD_SECTION__KEY`` in the environment, the file, the default here.
A key that is not known is an error, as is anything else that could be a slip; all errors are told
at once, each as ``file:line:column path.to.key: message``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    GetJsonSchemaHandler,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from clustering.errors import ConfigError
from clustering.features.schema import FieldSpec, FieldType
from stream.config_file import KeyPath, read_document
from stream.config_problems import report
from stream.units import Duration, Size, parse_duration, parse_size

Text = Annotated[str, Field(min_length=1)]
Conflict = tuple[KeyPath, str]
FieldKind = Literal[
    "name", "text", "date", "number", "category", "phone", "email", "identifier", "ignore"
]


class Section(BaseModel):
    """A part of the configuration; ``conflicts`` says which settings do not go together."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def conflicts(self) -> Iterator[Conflict]:
        """Each key, as a path within this section, that another one rules out, and why."""
        yield from ()

    @model_validator(mode="after")
    def _refuse_conflicts(self) -> Self:
        errors = [
            InitErrorDetails(
                type=PydanticCustomError("conflict", "{reason}", {"reason": reason}),
                loc=path,
                input=None,
            )
            for path, reason in self.conflicts()
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self


class SourceConfig(Section):
    """How a record is recognised in the input."""

    id_field: Text = Field(default="id", description="Field that holds a record's id.")
    source_field: Text = Field(
        default="source",
        description="Field that names the source a record comes from; records may lack it.",
    )
    default_source: Text = Field(
        default="default", description="Source of the records that do not name theirs."
    )
    version_field: Text | None = Field(
        default=None,
        description="Field with a number or timestamp that grows with each version of a record; "
        "an older version than the one held is then ignored. Without it the last one counts.",
    )
    operation_field: Text = Field(
        default="_op", description="Field that says what to do with a record; without it: keep it."
    )
    max_field_size: Size = Field(
        default=parse_size("1MiB"), gt=0, description="Largest value of one field, in bytes."
    )
    max_record_size: Size = Field(
        default=parse_size("8MiB"), gt=0, description="Largest record, in bytes."
    )

    @property
    def reserved(self) -> tuple[str, ...]:
        """The fields that say which record it is, and are never compared."""
        names = (self.id_field, self.source_field, self.operation_field, self.version_field)
        return tuple(name for name in names if name is not None)

    def conflicts(self) -> Iterator[Conflict]:
        """Reserved fields are different ones; a field fits in a record."""
        seen: dict[str, str] = {}
        for key in ("id_field", "source_field", "operation_field", "version_field"):
            name = getattr(self, key)
            if name is not None and name in seen:
                yield (key,), f'"{name}" is already the {seen[name]}; name another field'
            seen.setdefault(name, key)
        if self.max_field_size > self.max_record_size:
            yield ("max_field_size",), "is larger than max_record_size; make it smaller"


class FieldConfig(Section):
    """What one field of a record is; its type alone can be written in place of the mapping."""

    type: FieldKind = Field(
        description="How values are compared; `ignore` carries the field along uncompared."
    )
    weight: float = Field(
        default=1.0, gt=0, description="How much the field counts beside the others, as a factor."
    )
    placeholders: tuple[str, ...] = Field(
        default=(),
        strict=False,  # a list will do: `_type_alone` hides from pydantic that this was JSON
        description="Values that mean nothing is known, in this field only.",
    )
    date_order: Literal["ymd", "dmy", "mdy"] | None = Field(
        default=None,
        description="Order of day, month and year in dates such as 01/02/1980; only for `date`.",
    )
    default_region: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = Field(
        default=None,
        description="Country (ISO 3166, such as DE) of numbers without +; only for `phone`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _type_alone(cls, data: object) -> object:
        return {"type": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        whole = handler.resolve_ref_schema(handler(schema))
        types = list(get_args(FieldKind))
        return {"anyOf": [{"type": "string", "enum": types}, whole]}

    def conflicts(self) -> Iterator[Conflict]:
        """What is meant for one type is given for that type only."""
        if self.date_order and self.type != "date":
            yield ("date_order",), f"is only for fields of the type date, not {self.type}"
        if self.default_region and self.type != "phone":
            yield ("default_region",), f"is only for fields of the type phone, not {self.type}"


class KnownSourceConfig(Section):
    """What is known of one source."""

    no_duplicates: bool = Field(
        default=False, description="No two records of this source are the same entity."
    )


class NormaliseConfig(Section):
    """What is done to values before they are compared; stored values stay as they came."""

    placeholders: tuple[str, ...] = Field(
        default=(), description="Values that mean nothing is known, beside those built in (N/A …)."
    )
    stop_phrases: tuple[str, ...] = Field(
        default=(), description="Words left out of names and texts, such as `so-called`."
    )


def _auto_or_number(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        return handler(value)
    except ValidationError:
        reason = f'is {json.dumps(value, default=str)}; use "auto" or a number'
        raise PydanticCustomError("threshold", "{reason}", {"reason": reason}) from None


class MatchingConfig(Section):
    """When records are the same entity."""

    linkage: Literal["learned", "cosine", "average"] = Field(
        default="learned",
        description="How alike two groups of records are: by what was learned about each field, "
        "by the angle between their sums, or by the mean over their pairs.",
    )
    threshold: Annotated[Literal["auto"] | FiniteFloat, WrapValidator(_auto_or_number)] = Field(
        default="auto",
        description="Least linkage within an entity; `auto` takes it from the records.",
    )
    model_file: Path | None = Field(
        default=None,
        description="A trained model to start from, relative to the working directory; only for "
        "the learned linkage.",
    )
    evidence_fields: PositiveInt = Field(
        default=2,
        description="Fields that must agree independently before records are put together; all "
        "of them where fewer are compared.",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """A model file is for the linkage that is learned."""
        if self.model_file is not None and self.linkage != "learned":
            yield ("model_file",), f"is only for the learned linkage, not for {self.linkage}"


class ModelConfig(Section):
    """When what was learned from the records is learned again."""

    refit_at: tuple[PositiveInt, ...] = Field(
        default=(100, 500, 2000, 8000, 32000),
        description="Counts of records at which the model is refitted, growing.",
    )
    refit_at_end: bool = Field(
        default=True, description="Refit once more when an input that has an end is read."
    )
    seed: NonNegativeInt = Field(default=1, description="Seed of everything drawn at random.")

    def conflicts(self) -> Iterator[Conflict]:
        """Refits come at growing counts."""
        for i, (before, after) in enumerate(zip(self.refit_at, self.refit_at[1:], strict=False)):
            if after <= before:
                yield ("refit_at", i + 1), f"{after} does not follow {before}; counts must grow"


class TreeConfig(Section):
    """How the online cluster tree is kept."""

    rotate: bool = Field(default=True, description="Rotate after an insert.")
    graft: bool = Field(default=True, description="Graft after an insert.")
    restruct: Literal["none", "text", "code"] = Field(
        default="code",
        description="What is mended after a graft: nothing, where the subtree was cut out (as the "
        "paper's text has it), or beside the place it came to (as its authors' program does).",
    )
    cap: NonNegativeInt = Field(
        default=100,
        description="Subtrees of more leaves are not rotated or grafted any more; 0 for no cap.",
    )
    single_elimination: bool = Field(
        default=False, description="Two nodes that refuse each other end the grafts of an insert."
    )
    single_search: bool = Field(
        default=True, description="One neighbour search an insert, shared by all its grafts."
    )
    neighbours: PositiveInt = Field(default=25, description="Neighbours that a search asks for.")


class NeighboursConfig(Section):
    """How the records nearest to a new one are found."""

    exact_below: NonNegativeInt = Field(
        default=25_000,
        description="Search exactly below this many distinct vectors, approximately from there on.",
    )
    ef_search: PositiveInt = Field(
        default=100, description="Candidates kept in an approximate search; more finds more."
    )
    ef_construction: PositiveInt = Field(
        default=100, description="Candidates kept when a vector is added; more links better."
    )
    m: int = Field(default=16, ge=2, le=128, description="Links of a vector in each layer.")
    dimension: int = Field(default=96, ge=8, le=4096, description="Length of the search vectors.")


class StateConfig(Section):
    """What is written to the data directory, and how often."""

    batch_records: PositiveInt = Field(
        default=500, description="Most records in one atomic write to the store."
    )
    batch_wait: Duration = Field(
        default=parse_duration("200ms"),
        description="Longest wait for a batch to fill before it is written as it is.",
    )
    sync: bool = Field(
        default=True, description="Wait for the disk at each write, so that a power cut loses none."
    )


class OutputConfig(Section):
    """The files that are written beside the store; each line of them is one JSON message."""

    entity_updates: Text = Field(
        default="entity-updates.jsonl", description="File of what changed in the entities."
    )
    assignments: Text = Field(
        default="assignments.jsonl", description="File of which entity each record belongs to."
    )
    dead_letters: Text = Field(
        default="dead-letters.jsonl", description="File of what could not be read, and why."
    )

    def conflicts(self) -> Iterator[Conflict]:
        """Each is a plain name of a file of its own."""
        seen: dict[str, str] = {}
        for key in type(self).model_fields:
            name = getattr(self, key)
            if Path(name).name != name:
                yield (key,), f'"{name}" must be the name of a file, without a folder'
            elif name in seen:
                yield (key,), f'"{name}" is already the file of {seen[name]}; name another'
            seen.setdefault(name, key)


class Config(Section):
    """The configuration of graftd."""

    version: Literal[1] = Field(default=1, description="Version of this file's format.")
    source: SourceConfig = SourceConfig()
    fields: Mapping[str, FieldConfig] = Field(
        default={},
        description="What each field of a record is. Empty: decided from the first records. When "
        "any is given, fields that are not are carried along uncompared.",
    )
    sources: Mapping[str, KnownSourceConfig] = Field(
        default={}, description="What is known of each source, by name."
    )
    normalise: NormaliseConfig = NormaliseConfig()
    matching: MatchingConfig = MatchingConfig()
    model: ModelConfig = ModelConfig()
    tree: TreeConfig = TreeConfig()
    neighbours: NeighboursConfig = NeighboursConfig()
    state: StateConfig = StateConfig()
    output: OutputConfig = OutputConfig()

    def conflicts(self) -> Iterator[Conflict]:
        """Settings of different sections that do not go together."""
        for name, field in self.fields.items():
            if name in self.source.reserved and field.type != "ignore":
                yield ("fields", name), "says which record it is (see source), so only `ignore`"
        if self.fields and not to_field_specs(self):
            yield ("fields",), "nothing is left to compare; give a field another type than ignore"
        if self.neighbours.ef_search < self.tree.neighbours:
            reason = f"must be at least tree.neighbours, which is {self.tree.neighbours}"
            yield ("neighbours", "ef_search"), reason


def load_config(path: Path | None, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration in a file, or the defaults when ``path`` is None.

    environ: variables for ``${VAR}`` and ``GRAFTD_SECTION__KEY``; the process's own when None.
    Raises ConfigError that tells everything wrong with it, one problem a line.
    """
    environ = os.environ if environ is None else environ
    if path is None:
        return parse_config("", "defaults", environ)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text at byte {error.start}; save it as UTF-8"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_config(text, str(path), environ)


def parse_config(text: str, source: str, environ: Mapping[str, str]) -> Config:
    """The configuration in a YAML ``text`` whose messages name it ``source``. See load_config."""
    document = read_document(text, source, environ)
    # A section all of whose keys are commented out is null in YAML; it stands at its defaults.
    data = {key: value for key, value in document.data.items() if value is not None}
    config = None
    try:
        config = Config.model_validate_json(json.dumps(data))
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            report(document, error, Config)
    if config is None or document.problems:
        raise ConfigError("\n".join(str(problem) for problem in document.sorted_problems()))
    return config


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the configuration, for editors and for checks without graftd."""
    schema = Config.model_json_schema()
    for section in (value for _, value in Config() if isinstance(value, Section)):
        properties = schema["$defs"][type(section).__name__]["properties"]
        for key, default in section.model_dump(mode="json").items():
            properties[key]["default"] = default  # with its unit, as it stands in a file
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "graftd configuration",
    }


def fingerprint(config: Config) -> str:
    """16 hexadecimal digits, equal for equal settings however they were written.

    The order of the fields counts, since it is the order of their blocks in a vector.
    """
    settings = json.dumps(config.model_dump(mode="json"), ensure_ascii=False)
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def to_field_specs(config: Config) -> tuple[FieldSpec, ...]:
    """The fields that are compared, in the order of the file; empty when it lists none."""
    return tuple(
        FieldSpec(name, FieldType(field.type), field.weight)
        for name, field in config.fields.items()
        if field.type != "ignore"
    )
