"""Check of a bill of materials: by the schema of its format, strictly, and that nothing it names is missing.

The bill's file is the argument. Prints what is wrong, and ends with 1 then.
"""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(path):
    text = pathlib.Path(path).read_text(encoding='utf-8')
    bill = json.loads(text)
    fault = JsonStrictValidator(SchemaVersion.from_version(bill['specVersion'])).validate_str(text)
    if fault is not None:
        sys.exit(f'{path}: {fault}')
    listed = {component['bom-ref'] for component in [bill['metadata']['component'], *bill['components']]}
    used = {ref for entry in bill['dependencies'] for ref in [entry['ref'], *entry.get('dependsOn', [])]}
    if used != listed:
        sys.exit(f'{path}: named and not listed, or listed and not used: {sorted(used ^ listed)}')
    unlicensed = [component['name'] for component in bill['components'] if 'licenses' not in component]
    print(f'{len(listed)} components, {len(unlicensed)} with a licence of their own words: {unlicensed}')


main(sys.argv[1])
