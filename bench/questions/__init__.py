"""model_questions model_reader model_facts confined"""
