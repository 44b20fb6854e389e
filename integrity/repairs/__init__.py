"""From a finding to its repair: planned as data, approved by a person, carried out whole or not at all, taken back."""
